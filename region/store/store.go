package store

import (
	"context"
	"errors"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// Store runs scripts in a region's store, as the generation it was opened under. Safe for
// concurrent use if its Servers are.
type Store struct {
	session
	timeout  time.Duration
	deadline time.Duration // the timeout, as a node's clock shows it
	heed     func(error)   // hears the outcome of each guarded call; nil: nobody does
}

// Parts are what a Store is made of, over any Servers.
type Parts struct {
	Servers   Servers
	Address   Address
	Shards    Shards           // nil: the store is not divided
	Now       func() time.Time // the node's wall clock; nil: time.Now
	NewSecret func() string    // returns another each time
	Timeout   time.Duration    // bounds each round trip; 0: DefaultTimeout
	Deadline  time.Duration    // the timeout as a node's clock shows it; 0: Timeout
}

// New returns a store over servers, which it closes in the end. It does not talk to them yet.
func New(p Parts) *Store {
	if p.Now == nil {
		p.Now = time.Now
	}
	if p.Timeout == 0 {
		p.Timeout = DefaultTimeout
	}
	if p.Deadline == 0 {
		p.Deadline = p.Timeout
	}
	if len(p.Shards) == 0 {
		p.Shards = Shards{Whole}
	}
	s := &Store{timeout: p.Timeout, deadline: p.Deadline, session: session{servers: p.Servers, address: p.Address,
		shards: p.Shards, now: p.Now, newSecret: p.NewSecret, timeout: p.Timeout, seen: newSeen(p.Shards)}}
	return s
}

// Heed has somebody hear the outcome of each call of a guarded script: why it was not done; ErrNotOpen
// where the store is not open under this node's generation; nil where it was done. Call it before the
// store is used.
func (s *Store) Heed(outcome func(error)) { s.heed = outcome }

// Close ends the connections.
func (s *Store) Close() error { return s.servers.Close() }

// Deadline returns the time within which every call is answered, or has failed.
func (s *Store) Deadline() time.Duration { return s.deadline }

// Result is a script's answer, or why there is none. After an error it is unknown whether the script ran.
type Result[R any] struct {
	Value R
	Err   error
}

// Decide runs decisions in one round trip, in order; of the calls' fences only the epoch need be set. Only where the
// server got to know the script in between do calls that it could not run yet follow behind the others.
func (s *Store) Decide(ctx context.Context, calls []algorithms.Decide) []Result[algorithms.Decided] {
	return run[algorithms.Decide, algorithms.Decided](ctx, s, calls)
}

// Lend runs debits in one round trip, in order; of the calls' fences only the epoch need be set.
func (s *Store) Lend(ctx context.Context, calls []algorithms.Lend) []Result[algorithms.Given] {
	return run[algorithms.Lend, algorithms.Given](ctx, s, calls)
}

// Credit runs credits in one round trip, in order; of the calls' fences only the epoch need be set.
func (s *Store) Credit(ctx context.Context, calls []algorithms.Credit) []Result[algorithms.Credited] {
	return run[algorithms.Credit, algorithms.Credited](ctx, s, calls)
}

// Recall reads what this region has heard of a peer's rows, and fences; of the calls' fences only the epoch need be set.
func (s *Store) Recall(ctx context.Context, calls []algorithms.Recall) []Result[algorithms.Recalled] {
	return run[algorithms.Recall, algorithms.Recalled](ctx, s, calls)
}

// Restore gives lost buckets back what is known of them; of the calls' fences only the epoch need be set.
func (s *Store) Restore(ctx context.Context, calls []algorithms.Restore) []Result[algorithms.Restored] {
	return run[algorithms.Restore, algorithms.Restored](ctx, s, calls)
}

// Book charges what nodes admitted without the store; of the calls' fences only the epoch need be set.
func (s *Store) Book(ctx context.Context, calls []algorithms.Book) []Result[algorithms.Booked] {
	return run[algorithms.Book, algorithms.Booked](ctx, s, calls)
}

// Inspect reads the ledger of one bucket; of the call's fence only the epoch need be set.
func (s *Store) Inspect(ctx context.Context, c algorithms.Inspect) (algorithms.Inspected, error) {
	r := run[algorithms.Inspect, algorithms.Inspected](ctx, s, []algorithms.Inspect{c})
	return r[0].Value, r[0].Err
}

// Refund takes back what one decision charged; of the call's fence only the epoch need be set.
func (s *Store) Refund(ctx context.Context, c algorithms.Refund) (algorithms.Refunded, error) {
	r := run[algorithms.Refund, algorithms.Refunded](ctx, s, []algorithms.Refund{c})
	return r[0].Value, r[0].Err
}

// Reset clears the use of one bucket; of the call's fence only the epoch need be set.
func (s *Store) Reset(ctx context.Context, c algorithms.Reset) (algorithms.Cleared, error) {
	r := run[algorithms.Reset, algorithms.Cleared](ctx, s, []algorithms.Reset{c})
	return r[0].Value, r[0].Err
}

// fenced is a pointer to a call of a guarded script.
type fenced[C any] interface {
	*C
	Fenced() *algorithms.Fence
}

// answer is what a guarded script answers.
type answer interface{ Answered() algorithms.Head }

// run has calls of a guarded script run, and completes their fences. What another store answered
// counts for nothing.
func run[C call[R], R answer, P fenced[C]](ctx context.Context, s *Store, calls []C) []Result[R] {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	held := s.standing()
	results, ops, sent := make([]Result[R], len(calls)), make([]Op[C, R], len(calls)), make([]Call, 0, len(calls))
	for i := range calls {
		op := &ops[i]
		op.Call, op.keys = calls[i], calls[i].Keys()
		shard, err := shardOf(op.Script(), op.keys)
		if err != nil {
			results[i].Err = err
			continue
		}
		fence := P(&op.Call).Fenced()
		*fence = s.fence(shard, held, *fence)
		sent = append(sent, Call{Shard: shard, Op: op, Identify: held.replids[shard] != ""})
	}
	replies := s.servers.Exec(ctx, sent)
	for i := range results {
		if results[i].Err != nil {
			continue
		}
		results[i] = countsFor(&ops[i], sent[0], replies[0], held)
		s.saw(sent[0].Shard, results[i].Value.Answered().Now)
		if s.heed != nil {
			s.heed(outcome(results[i]))
		}
		sent, replies = sent[1:], replies[1:]
	}
	return results
}

// outcome says whether a call was done by a store that is open under this node's generation.
func outcome[R answer](r Result[R]) error {
	if r.Err == nil && r.Value.Answered().Status == algorithms.StatusUnknown {
		return ErrNotOpen
	}
	return r.Err
}

// countsFor is what a reply means for who opened the store on certain data.
func countsFor[C call[R], R any](op *Op[C, R], sent Call, r Reply, held *standing) Result[R] {
	var failure *Error
	switch {
	case errors.As(r.Err, &failure):
		return Result[R]{Err: r.Err}
	case !held.counts(sent.Shard, r.Replid):
		r.Err = op.Read(strangers)
	}
	return Result[R]{op.Answer, r.Err}
}
