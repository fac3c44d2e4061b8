package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Size is how much the servers of a store hold. Bytes are all that they use; keys those of the store's database.
type Size struct {
	Keys, Bytes int64
	Known       bool // the servers say it, which the embedded Redis does not
}

// Size asks every server that holds a shard, each once.
func (s *Store) Size(ctx context.Context) (Size, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var all Size
	var mu sync.Mutex
	asked := map[string]bool{}
	err := s.each(func(_ int, shard Shard) error {
		client, err := s.topology.master(ctx, shard)
		if err != nil {
			return failed(s.address.String(), "read the store's size", err)
		}
		at := client.Options().Addr
		mu.Lock()
		again := asked[at]
		asked[at] = true
		mu.Unlock()
		if again {
			return nil
		}
		memory, err := client.Info(ctx, "memory").Result()
		if notSupported(err) {
			return nil
		}
		if err != nil {
			return failed(at, "read the store's size", err)
		}
		keyspace, err := client.Info(ctx, "keyspace").Result()
		if err != nil {
			return failed(at, "read the store's size", err)
		}
		bytes, err := strconv.ParseInt(infoField(memory, "used_memory"), 10, 64)
		if err != nil {
			return nil // it does not say
		}
		mu.Lock()
		defer mu.Unlock()
		all = Size{all.Keys + keysIn(keyspace, client.Options().DB), all.Bytes + bytes, true}
		return nil
	})
	return all, err
}

// keysIn reads how many keys a database has; one without any is not listed.
func keysIn(keyspace string, db int) int64 {
	keys, _, _ := strings.Cut(strings.TrimPrefix(infoField(keyspace, fmt.Sprintf("db%d", db)), "keys="), ",")
	n, _ := strconv.ParseInt(keys, 10, 64)
	return n
}
