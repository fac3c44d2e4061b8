package store

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// NoEviction is the one maxmemory-policy under which a Redis forgets nothing on its own.
const NoEviction = "noeviction"

// memories asks the server of each shard for its memory; each server counts once.
func (s *Store) memories(ctx context.Context) ([]Memory, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	all := make([]Memory, len(s.shards))
	err := s.each(func(i int, shard Shard) (err error) {
		all[i], err = s.servers.Memory(ctx, shard)
		return err
	})
	slices.SortStableFunc(all, func(a, b Memory) int { return strings.Compare(a.Server, b.Server) })
	return slices.CompactFunc(all, func(a, b Memory) bool { return a.Server == b.Server }), err
}

// Eviction returns what the servers say they do when their memory is full, their maxmemory-policy: NoEviction if all
// say so, else the first other one, in the order of the alphabet. Empty: they do not say, as the embedded Redis.
func (s *Store) Eviction(ctx context.Context) (string, error) {
	all, err := s.memories(ctx)
	if err != nil {
		return "", err
	}
	found := map[string]bool{}
	for _, m := range all {
		if m.Known {
			found[m.Policy] = true
		}
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

// Size is how much the servers of a store hold. Bytes are all that they use; keys those of the store's database.
type Size struct {
	Keys, Bytes int64
	Known       bool // the servers say it, which the embedded Redis does not
}

// Size asks every server that holds a shard.
func (s *Store) Size(ctx context.Context) (Size, error) {
	all, err := s.memories(ctx)
	var size Size
	for _, m := range all {
		if m.Known && m.Bytes >= 0 {
			size = Size{size.Keys + m.Keys, size.Bytes + m.Bytes, true}
		}
	}
	return size, err
}

// Reach says why a shard's server does not answer; nil: it does.
func (s *Store) Reach(ctx context.Context, shard Shard) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.servers.Ping(ctx, shard)
}
