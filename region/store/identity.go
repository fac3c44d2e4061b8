package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
)

// standing is what a node knows of the store that it opened. It never changes.
type standing struct {
	generation uint64
	node       string
	secret     string
	replids    map[Shard]string // master_replid of each shard's server; empty: it has none
	begun      map[Shard]int64  // store time at which each shard's generation began
	lostAt     map[Shard]int64  // store time at which each shard last lost data, 0: never
}

// counts says whether what a server answered of a shard counts, which was then found to hold the data of found: any
// server's does where the shard was opened on one without identity.
func (held *standing) counts(shard Shard, found string) bool {
	opened := held.replids[shard]
	return opened == "" || opened == found
}

// strangers is the reply that is put in the place of one that does not count: that of a store which another opened.
var strangers any = []any{int64(algorithms.StatusUnknown)}

// replid reads the identity of a server's data from its INFO replication: another server, a promoted replica and one that
// was a replica in between all have another. The embedded Redis knows no such section and has no identity; it neither
// loses its data before its process ends nor has replicas.
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
	return "", errors.New("read which data it holds: INFO replication names no master_replid; use Redis 7.0 or later")
}

// notSupported says whether an error is the embedded Redis' answer to a section of INFO that it does not have.
func notSupported(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) && strings.Contains(answer.Error(), "is not supported")
}
