package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// identity is what a node knows of the store that it opened. It never changes.
type identity struct {
	generation uint64
	node       string
	secret     string
	// master_replid of each shard's server; empty: the server has none
	replids map[Shard]string
	begun   map[Shard]quantity.StoreTime // store time at which each shard's generation began
	lostAt  map[Shard]quantity.StoreTime // store time at which each shard last lost data, 0: never
}

// counts says whether an answer about a shard counts, given that its server holds the data
// identified by found. If the shard was opened on a server without identity, every answer counts.
func (held *identity) counts(shard Shard, found string) bool {
	opened := held.replids[shard]
	return opened == "" || opened == found
}

// strangers is the reply put in place of one that does not count. It reads as StatusUnknown, the
// answer of a store that another node opened.
var strangers any = []any{int64(algorithms.StatusUnknown)}

// replid reads the identity of a server's data from its INFO replication. Another server, a
// promoted replica, and a server that was a replica in between each have a different identity. The
// embedded Redis has no such section and no identity: it does not lose its data before its process
// ends, and has no replicas.
func replid(info *redis.StringCmd) (string, error) {
	text, err := info.Result()
	switch {
	case notSupported(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read which data it holds: %w", err)
	}
	if id := infoField(text, "master_replid"); id != "" {
		return id, nil
	}
	return "", errors.New(
		"read which data it holds: INFO replication names no master_replid; use Redis 7.0 or later")
}

// notSupported says whether an error is how the embedded Redis answers a section of INFO that it
// lacks.
func notSupported(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) && strings.Contains(answer.Error(), "is not supported")
}
