package store

import (
	"context"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// Store runs scripts in a region's Redis, as the generation it was opened under. Safe for concurrent use.
type Store struct {
	session
	topology topology
	timeout  time.Duration
	deadline time.Duration // the timeout, as a node's clock shows it
}

// Close ends the connections.
func (s *Store) Close() error { return s.topology.Close() }

// Result is a script's answer, or why there is none. After an error it is unknown whether the script ran.
type Result[R any] struct {
	Value R
	Err   error
}

// Decide runs decisions in one round trip, in order; of the calls' guards only the epoch need be set. Only where the
// server got to know the script in between do calls that it could not run yet follow behind the others.
func (s *Store) Decide(ctx context.Context, calls []algorithms.Decide) []Result[algorithms.Decided] {
	items := make([]item[algorithms.Decided], len(calls))
	for i, c := range calls {
		c.Fence = s.guard(c.Buckets[0].Key, c.Fence)
		items[i] = prepare(algorithms.DecideScript, c)
	}
	results := run(ctx, s, items)
	for i := range results {
		s.saw(items[i].shard, results[i].Value.Now)
	}
	return results
}

// Lend runs debits in one round trip, in order; of the calls' guards only the epoch need be set.
func (s *Store) Lend(ctx context.Context, calls []algorithms.Lend) []Result[algorithms.Given] {
	items := make([]item[algorithms.Given], len(calls))
	for i, c := range calls {
		c.Fence = s.guard(c.Key, c.Fence)
		items[i] = prepare(algorithms.LendScript, c)
	}
	results := run(ctx, s, items)
	for i := range results {
		s.saw(items[i].shard, results[i].Value.Now)
	}
	return results
}

// Credit runs credits in one round trip, in order; of the calls' guards only the epoch need be set.
func (s *Store) Credit(ctx context.Context, calls []algorithms.Credit) []Result[algorithms.Credited] {
	items := make([]item[algorithms.Credited], len(calls))
	for i, c := range calls {
		c.Fence = s.guard(c.Key, c.Fence)
		items[i] = prepare(algorithms.CreditScript, c)
	}
	results := run(ctx, s, items)
	for i := range results {
		s.saw(items[i].shard, results[i].Value.Now)
	}
	return results
}

// Inspect reads the ledger of one bucket; of the call's guard only the epoch need be set.
func (s *Store) Inspect(ctx context.Context, c algorithms.Inspect) (algorithms.Inspected, error) {
	c.Fence = s.guard(c.Key, c.Fence)
	r := run(ctx, s, []item[algorithms.Inspected]{prepare(algorithms.InspectScript, c)})
	return r[0].Value, r[0].Err
}

// Refund takes back what one decision charged; of the call's guard only the epoch need be set.
func (s *Store) Refund(ctx context.Context, c algorithms.Refund) (algorithms.Refunded, error) {
	c.Fence = s.guard(c.Receipt, c.Fence)
	r := run(ctx, s, []item[algorithms.Refunded]{prepare(algorithms.RefundScript, c)})
	return r[0].Value, r[0].Err
}

// Reset clears the use of one bucket; of the call's guard only the epoch need be set.
func (s *Store) Reset(ctx context.Context, c algorithms.Reset) (algorithms.Cleared, error) {
	c.Fence = s.guard(c.Key, c.Fence)
	r := run(ctx, s, []item[algorithms.Cleared]{prepare(algorithms.ResetScript, c)})
	return r[0].Value, r[0].Err
}
