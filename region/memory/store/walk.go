package store

import (
	"context"
	"strings"

	"github.com/quotad/quotad/algorithms"
)

// Page is a step of a walk through the buckets of a shard.
type Page struct {
	Buckets []string // ids; one may come twice
	Next    uint64   // where the walk goes on; 0: it is over
}

// Walk returns the next page of a walk through a shard's buckets. For it the server looks at about
// count keys. The first page is from 0. A whole walk shows every bucket that is there all the
// while. It is a walk through one server's keys, so it begins anew when the store's generation has
// changed.
func (s *Store) Walk(ctx context.Context, shard Shard, from uint64, count int64) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	keys, next, err := s.servers.Keys(ctx, shard, from, count)
	p := Page{Next: next}
	for _, key := range keys {
		if id, ok := strings.CutPrefix(key, BucketKey(shard, "")); ok {
			p.Buckets = append(p.Buckets, id)
		}
	}
	return p, err
}

// Inspects reads the ledgers of several buckets, in one round trip. Of the calls' fences only the epoch
// need be set.
func (s *Store) Inspects(ctx context.Context, calls []algorithms.Inspect) []Result[algorithms.Inspected] {
	return run[algorithms.Inspect, algorithms.Inspected](ctx, s, calls)
}

const walkCall = "list its keys"

// Keys implements Servers.
func (r *redisServers) Keys(ctx context.Context, shard Shard, from uint64, count int64) (keys []string, next uint64, err error) {
	client, err := r.at(ctx, shard, walkCall)
	if err != nil {
		return nil, 0, err
	}
	keys, next, err = client.Scan(ctx, from, BucketKey(shard, "")+"*", count).Result()
	if err != nil {
		return nil, 0, r.failedAt(client, walkCall, err)
	}
	return keys, next, nil
}
