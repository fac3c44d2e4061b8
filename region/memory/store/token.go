package store

import (
	"context"
	"time"
)

// token runs a script that concerns only a shard's token, whatever data the server holds.
func token[C call[R], R any](ctx context.Context, s *session, timeout time.Duration, shard Shard,
	c C) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	op := &Op[C, R]{Call: c}
	r := s.servers.Exec(ctx, []Call{{Shard: shard, Op: op}})
	return op.Answer, r[0].Err
}

// look reads all tokens and the identity of their servers' data. It changes nothing.
func (s *session) look(ctx context.Context, node string) (looks, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	all := make(looks, len(s.shards))
	return all, s.each(func(i int, shard Shard) error {
		before := s.now()
		found, err := s.servers.Look(ctx, shard, onlyLook(node))
		all[i] = look{Opened: found.Opened, shard: shard, at: found.Server, server: found.Replid,
			apart: found.Clock.Sub(before)}
		return err
	})
}
