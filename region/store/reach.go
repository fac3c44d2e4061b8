package store

import (
	"context"
	"time"
)

// Deadline returns the time within which every call is answered, or has failed.
func (s *Store) Deadline() time.Duration { return s.deadline }

// Reach says why a shard's server does not answer; nil: it does.
func (s *Store) Reach(ctx context.Context, shard Shard) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	client, err := s.topology.master(ctx, shard)
	if err != nil {
		return failed(s.address.String(), "ping", err)
	}
	if err := client.Ping(ctx).Err(); err != nil {
		if faultOf(err).refresh {
			s.topology.refresh()
		}
		return failed(client.Options().Addr, "ping", err)
	}
	return nil
}
