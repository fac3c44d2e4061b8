package store

import (
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Prefix is the beginning of every key that quotad writes.
const Prefix = "{quotad"

// Shard is a part of a store whose keys one script may touch together. It is the Redis Cluster hash
// tag with which all its keys begin. Each shard has its own token, and with it its own generation.
type Shard string

// Whole is the only shard of a store that is not divided, as all are except those on a Redis
// Cluster.
const Whole Shard = Prefix + "}"

// clusterTags tell the shards of a store on a Redis Cluster apart. Every script call is about one
// shard, and costs as much as several more buckets in another call would, so there are few. The slot
// of each lies near the middle of its twelfth of all slots: 2, 3, 4, 6 or 12 masters with equal
// ranges of slots have equally many shards, and further masters serve nothing. The tags can never
// change: an entity's keys would be looked for in the wrong shard.
var clusterTags = [...]string{"0.72", "1.31", "2.63", "3.14", "4.20", "5.63",
	"6.50", "7.48", "8.2", "9.61", "10.179", "11.120"}

// Shards are the shards of a store, in order. The zero value means a store that is not divided.
type Shards []Shard

// Divided returns the first shards of a store on a Redis Cluster, at most the twelve that it has.
func Divided(shards int) Shards {
	all := make(Shards, shards)
	for i := range all {
		all[i] = Shard(Prefix + ":" + clusterTags[i] + "}")
	}
	return all
}

// Of returns the shard that all keys of an entity are in. It spreads entities evenly, but does not
// protect against chosen entities that all fall into one shard.
func (all Shards) Of(entity string) Shard {
	if len(all) == 0 {
		return Whole
	}
	return all[xxhash.Sum64String(entity)%uint64(len(all))]
}

// ShardOf returns the shard that a key is in; empty if the key is not quotad's.
func ShardOf(key string) Shard {
	if !strings.HasPrefix(key, Prefix) {
		return ""
	}
	return Shard(key[:strings.IndexByte(key, '}')+1])
}

// TokenKey returns the key of a shard's token, KEYS[1] of every script.
func TokenKey(s Shard) string { return string(s) + ":token" }

// The marks below belong to algorithms.Layout 1. Whoever raises it gives the keys other marks.

// BucketKey returns the key of a bucket's hash. A bucket id gives the length of each of its parts,
// so different buckets never share a key.
func BucketKey(s Shard, id string) string { return string(s) + ":b:" + id }

// OnceKey returns the key under which a request that must be charged only once is remembered. (What
// stands under :o: was written by versions of the script that put an answer in another order.)
func OnceKey(s Shard, digest string) string { return string(s) + ":once:" + digest }

// OnceKeyIn returns the key in another shard that corresponds to one of OnceKey.
func OnceKeyIn(s Shard, once string) string {
	return OnceKey(s, strings.TrimPrefix(once, OnceKey(ShardOf(once), "")))
}

// SettleKey returns the key under which the store remembers that a receipt was settled.
func SettleKey(s Shard, receipt string) string { return string(s) + ":r:" + receipt }
