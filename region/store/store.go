package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// Store runs scripts in a region's Redis, as the generation it was opened under. Safe for concurrent use.
type Store struct {
	address  Address
	topology topology
	shards   Shards
	timeout  time.Duration
	now      func() time.Time
	held     atomic.Pointer[standing] // nil: not open
	seen     atomic.Int64             // the latest store time a script answered with
}

// Shards returns how the store is divided: all keys of a call must be in one shard.
func (s *Store) Shards() Shards { return s.shards }

// Shard returns the shard that all keys of an entity are in.
func (s *Store) Shard(entity string) Shard { return s.shards.Of(entity) }

// Close ends the connections.
func (s *Store) Close() error { return s.topology.Close() }

// Generation returns the generation that scripts run under; 0 before Open.
func (s *Store) Generation() uint64 { return s.standing().generation }

// Begun returns the store time at which a shard's generation began, not before any that the shard had shown; 0
// before Open.
func (s *Store) Begun(shard Shard) int64 { return s.standing().begun[shard] }

// Secret returns what seals the receipts of this generation, the same for all nodes of the region; empty before Open.
func (s *Store) Secret() string { return s.standing().secret }

func (s *Store) standing() *standing {
	if held := s.held.Load(); held != nil {
		return held
	}
	return &standing{}
}

// guard fills in what the caller of a script need not know; the epoch is that of the terms it calls with. A caller that
// says under which generation its call makes sense has it refused under any other.
func (s *Store) guard(g algorithms.Guard) algorithms.Guard {
	if g.Generation == 0 {
		g.Generation = s.standing().generation
	}
	g.Clock = s.now().UnixMicro()
	return g
}

// saw notes a store time, so that a loss of the store's data is not taken to be earlier than what it has shown.
func (s *Store) saw(now int64) {
	for {
		seen := s.seen.Load()
		if now <= seen || s.seen.CompareAndSwap(seen, now) {
			return
		}
	}
}

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
		c.Guard = s.guard(c.Guard)
		items[i] = prepare(algorithms.DecideScript, c)
	}
	results := run(ctx, s, items)
	for i := range results {
		s.saw(results[i].Value.Now)
	}
	return results
}

// Lend runs debits in one round trip, in order; of the calls' guards only the epoch need be set.
func (s *Store) Lend(ctx context.Context, calls []algorithms.Lend) []Result[algorithms.Given] {
	items := make([]item[algorithms.Given], len(calls))
	for i, c := range calls {
		c.Guard = s.guard(c.Guard)
		items[i] = prepare(algorithms.LendScript, c)
	}
	results := run(ctx, s, items)
	for i := range results {
		s.saw(results[i].Value.Now)
	}
	return results
}

// Credit runs credits in one round trip, in order; of the calls' guards only the epoch need be set.
func (s *Store) Credit(ctx context.Context, calls []algorithms.Credit) []Result[algorithms.Credited] {
	items := make([]item[algorithms.Credited], len(calls))
	for i, c := range calls {
		c.Guard = s.guard(c.Guard)
		items[i] = prepare(algorithms.CreditScript, c)
	}
	results := run(ctx, s, items)
	for i := range results {
		s.saw(results[i].Value.Now)
	}
	return results
}

// Inspect reads the ledger of one bucket; of the call's guard only the epoch need be set.
func (s *Store) Inspect(ctx context.Context, c algorithms.Inspect) (algorithms.Inspected, error) {
	c.Guard = s.guard(c.Guard)
	r := run(ctx, s, []item[algorithms.Inspected]{prepare(algorithms.InspectScript, c)})
	return r[0].Value, r[0].Err
}

// Refund takes back what one decision charged; of the call's guard only the epoch need be set.
func (s *Store) Refund(ctx context.Context, c algorithms.Refund) (algorithms.Refunded, error) {
	c.Guard = s.guard(c.Guard)
	r := run(ctx, s, []item[algorithms.Refunded]{prepare(algorithms.RefundScript, c)})
	return r[0].Value, r[0].Err
}

// Reset clears the use of one bucket; of the call's guard only the epoch need be set.
func (s *Store) Reset(ctx context.Context, c algorithms.Reset) (algorithms.Cleared, error) {
	c.Guard = s.guard(c.Guard)
	r := run(ctx, s, []item[algorithms.Cleared]{prepare(algorithms.ResetScript, c)})
	return r[0].Value, r[0].Err
}

// ErrNotOpen says that a store has not been opened by this node, or has been opened anew by another.
var ErrNotOpen = errors.New("the store is not open under this node's generation")
