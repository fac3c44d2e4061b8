package store

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
)

// NoEviction is the one maxmemory-policy under which a Redis forgets nothing on its own.
const NoEviction = "noeviction"

// Eviction returns what the servers say they do when their memory is full, their maxmemory-policy: NoEviction if all
// say so, else the first other one, in the order of the alphabet. Empty: they do not say, as the embedded Redis.
func (s *Store) Eviction(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	found := map[string]bool{}
	var mu sync.Mutex
	err := s.each(func(_ int, shard Shard) error {
		client, err := s.topology.master(ctx, shard)
		if err != nil {
			return failed(s.address.String(), "read maxmemory-policy", err)
		}
		info, err := client.Info(ctx, "memory").Result()
		if notSupported(err) {
			return nil
		}
		if err != nil {
			return failed(client.Options().Addr, "read maxmemory-policy", err)
		}
		mu.Lock()
		defer mu.Unlock()
		found[infoField(info, "maxmemory_policy")] = true
		return nil
	})
	if err != nil {
		return "", err
	}
	for _, policy := range slices.Sorted(maps.Keys(found)) {
		if policy != NoEviction {
			return policy, nil
		}
	}
	if found[NoEviction] {
		return NoEviction, nil
	}
	return "", nil
}

// infoField reads a field of an INFO; empty if it is not there.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
