package store

import (
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Prefix begins every key quotad writes.
const Prefix = "{quotad"

// Shard is a part of a store whose keys a script may touch together: a Redis Cluster hash tag, with which all its keys
// begin. A shard has a token, and with it a generation, of its own.
type Shard string

// Whole is the one shard of a store that is not divided, which all but those on a Redis Cluster are.
const Whole Shard = Prefix + "}"

// clusterShards is into how many shards a store on a Redis Cluster is divided. It can never change: an entity's keys
// would be looked for where they are not. Masters beyond this number would serve nothing.
const clusterShards = 32

// Shards are those of a store, in order. The zero value is a store that is not divided.
type Shards []Shard

// divided returns the shards of a store on a Redis Cluster.
func divided() Shards { return Divided(clusterShards) }

// Divided returns so many shards.
func Divided(shards int) Shards {
	all := make(Shards, shards)
	for i := range all {
		all[i] = Shard(Prefix + ":" + strconv.Itoa(i) + "}")
	}
	return all
}

// Of returns the shard that all keys of an entity are in. It spreads entities evenly; it is no defence against chosen
// ones.
func (all Shards) Of(entity string) Shard {
	if len(all) == 0 {
		return Whole
	}
	return all[xxhash.Sum64String(entity)%uint64(len(all))]
}

// ShardOf returns the shard that a key is in; empty if the key is none of quotad's.
func ShardOf(key string) Shard {
	if !strings.HasPrefix(key, Prefix) {
		return ""
	}
	return Shard(key[:strings.IndexByte(key, '}')+1])
}

// TokenKey is the key of a shard's token, KEYS[1] of every script.
func TokenKey(s Shard) string { return string(s) + ":token" }

// BucketKey returns the key of a bucket's hash. Bucket ids hold lengths before each part, so that different buckets
// never share a key.
func BucketKey(s Shard, id string) string { return string(s) + ":b:" + id }

// OnceKey returns the key under which a request that is to be charged once is remembered.
func OnceKey(s Shard, digest string) string { return string(s) + ":o:" + digest }

// RefundKey returns the key under which it is remembered that a receipt was refunded.
func RefundKey(s Shard, receipt string) string { return string(s) + ":r:" + receipt }
