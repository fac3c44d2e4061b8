package store

import (
	"crypto/sha256"
	"encoding/hex"
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
	origin     Origin
	node       string
	secret     string
	// master_replid of each shard's server; empty: the server has none
	replids map[Shard]string
	begun   map[Shard]quantity.StoreTime // store time at which each shard's generation began
	lostAt  map[Shard]quantity.StoreTime // store time at which each shard last lost data, 0: never
}

// Origin tells one store of a region from another. Nodes compare it to find out that their region
// has two stores.
type Origin struct {
	// ID is a digest of the secret that the store was opened with and of its first server's
	// master_replid. So each opening has an ID of its own, and a replica that was promoted has
	// another one than the primary that it was copied from. Empty: no store.
	ID string
	// Since is the generation since which the store lost nothing.
	Since      uint64
	Generation uint64
}

// OlderThan reports whether the data of a store reach back further than those of another. Of two
// stores at most one is older than the other.
func (o Origin) OlderThan(other Origin) bool {
	return o.Since < other.Since || o.Since == other.Since && o.ID < other.ID
}

// originBytes is how much of a digest an ID has.
const originBytes = 16

// originID returns the ID of a store that was opened with a secret on a server.
func originID(secret, replid string) string {
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("quotad store\n" + replid + "\n" + secret))
	return hex.EncodeToString(sum[:originBytes])
}

// counts reports whether an answer about a shard counts, given that its server holds the data
// identified by found. If the shard was opened on a server without identity, every answer counts.
func (id *identity) counts(shard Shard, found string) bool {
	opened := id.replids[shard]
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
		"read which data it holds: INFO replication names no master_replid; use Valkey, or Redis 7.0 or later")
}

// notSupported reports whether an error is how the embedded Redis answers a section of INFO that it
// lacks.
func notSupported(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) && strings.Contains(answer.Error(), "is not supported")
}
