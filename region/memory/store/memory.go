package store

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// NoEviction is the only maxmemory-policy under which a Redis never drops keys by itself.
const NoEviction = "noeviction"

// memories asks the server of each shard for its memory. It returns each server once, sorted by
// name.
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

// Eviction returns the servers' maxmemory-policy: what they do when their memory is full. It
// returns NoEviction if all have that, else the alphabetically first other policy. It returns an
// empty string if the servers do not say, as the embedded Redis does not.
func (s *Store) Eviction(ctx context.Context) (string, error) {
	all, err := s.memories(ctx)
	if err != nil {
		return "", err
	}
	found := map[string]bool{}
	for _, m := range all {
		if m.Reported {
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

// Size is how much the servers of a store hold. Bytes is all the memory they use, Keys the number
// of keys in the store's database.
type Size struct {
	Keys, Bytes int64
	Reported    bool // false: the servers do not say, as the embedded Redis does not
}

// Size returns the sum over all servers that hold a shard.
func (s *Store) Size(ctx context.Context) (Size, error) {
	all, err := s.memories(ctx)
	var size Size
	for _, m := range all {
		if m.Reported && m.Bytes >= 0 {
			size = Size{size.Keys + m.Keys, size.Bytes + m.Bytes, true}
		}
	}
	return size, err
}

// ServerNames returns for each shard, in order, the name of the server that holds it, as far as is
// known; empty: it is not known. It takes a round trip at most.
func (s *Store) ServerNames(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	all := make([]string, len(s.shards))
	for i, shard := range s.shards {
		all[i] = s.servers.Server(ctx, shard)
	}
	return all
}

// Reach returns why a shard's server does not answer; nil: it does.
func (s *Store) Reach(ctx context.Context, shard Shard) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.servers.Ping(ctx, shard)
}
