package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// Store runs scripts in a region's store, under the generation it was opened with. Safe for
// concurrent use if its Servers are.
type Store struct {
	session
	deadline time.Duration // the timeout, as the node's clock shows it
	heed     func(error)   // is told the outcome of each guarded call; nil: nobody is
}

// Parts are what New makes a Store of, over any Servers.
type Parts struct {
	Servers   Servers
	Address   Address
	Shards    Shards           // nil: one shard
	Now       func() time.Time // the node's wall clock; nil: time.Now
	NewSecret func() string    // returns a new secret each time
	Timeout   time.Duration    // bounds each round trip; 0: DefaultTimeout
	Deadline  time.Duration    // the timeout as the node's clock shows it; 0: Timeout
}

// New returns a store over servers. It does not talk to them yet; Close closes them.
func New(p Parts) *Store {
	if p.Now == nil {
		p.Now = time.Now
	}
	p.Timeout = cmp.Or(p.Timeout, DefaultTimeout)
	p.Deadline = cmp.Or(p.Deadline, p.Timeout)
	if len(p.Shards) == 0 {
		p.Shards = Shards{Whole}
	}
	return &Store{deadline: p.Deadline, session: session{servers: p.Servers, address: p.Address,
		shards: p.Shards, now: p.Now, newSecret: p.NewSecret, timeout: p.Timeout,
		seen: newSeen(p.Shards)}}
}

// Heed sets the function that is told the Err of the Result of each call of a guarded script. Call
// Heed before the store is used.
func (s *Store) Heed(outcome func(error)) { s.heed = outcome }

// Close closes the connections.
func (s *Store) Close() error { return s.servers.Close() }

// Timeout returns the time after which a call is given up, by this process's clock.
func (s *Store) Timeout() time.Duration { return s.timeout }

// Deadline returns the time within which every call is answered or has failed.
func (s *Store) Deadline() time.Duration { return s.deadline }

// Result is a script's answer, or why there is none. With a *LostBucket or other *Refused, Value is
// the answer all the same. After any other error the script may have run, unless the error is an
// *Error without Ran, or the call was not sent because its keys are not in one shard.
type Result[R any] struct {
	Value R
	Err   error
}

// Lend runs debits in one round trip, in order. Of the calls' fences only the epoch need be set.
func (s *Store) Lend(ctx context.Context, calls []algorithms.Lend) []Result[algorithms.Given] {
	return run[algorithms.Lend, algorithms.Given](ctx, s, calls)
}

// Assign runs calls about rights that nodes assign, in one round trip, in order. Of the calls'
// fences only the epoch need be set.
func (s *Store) Assign(ctx context.Context,
	calls []algorithms.Assign) []Result[algorithms.Assigned] {
	return run[algorithms.Assign, algorithms.Assigned](ctx, s, calls)
}

// Credit runs credits in one round trip, in order. Of the calls' fences only the epoch need be set.
func (s *Store) Credit(ctx context.Context,
	calls []algorithms.Credit) []Result[algorithms.Credited] {
	return run[algorithms.Credit, algorithms.Credited](ctx, s, calls)
}

// Recall reads what this region has heard of a peer's rows, and fences the peer's lower
// generations. Of the calls' fences only the epoch need be set.
func (s *Store) Recall(ctx context.Context,
	calls []algorithms.Recall) []Result[algorithms.Recalled] {
	return run[algorithms.Recall, algorithms.Recalled](ctx, s, calls)
}

// Restore gives lost buckets back what is known of them. Of the calls' fences only the epoch need
// be set.
func (s *Store) Restore(ctx context.Context,
	calls []algorithms.Restore) []Result[algorithms.Restored] {
	return run[algorithms.Restore, algorithms.Restored](ctx, s, calls)
}

// Book charges what nodes admitted without the store. Of the calls' fences only the epoch need be
// set.
func (s *Store) Book(ctx context.Context, calls []algorithms.Book) []Result[algorithms.Booked] {
	return run[algorithms.Book, algorithms.Booked](ctx, s, calls)
}

// Inspect reads the ledger of one bucket. Of the call's fence only the epoch need be set.
func (s *Store) Inspect(ctx context.Context, c algorithms.Inspect) (algorithms.Inspected, error) {
	r := s.Inspects(ctx, []algorithms.Inspect{c})
	return r[0].Value, r[0].Err
}

// Settle settles what one decision charged. Of the call's fence only the epoch need be set.
func (s *Store) Settle(ctx context.Context, c algorithms.Settle) (algorithms.Settled, error) {
	r := s.Settles(ctx, []algorithms.Settle{c})
	return r[0].Value, r[0].Err
}

// Settles settles what several decisions charged, in one round trip. Of the calls' fences only
// the epoch need be set.
func (s *Store) Settles(ctx context.Context,
	calls []algorithms.Settle) []Result[algorithms.Settled] {
	return run[algorithms.Settle, algorithms.Settled](ctx, s, calls)
}

// Reset clears the use of one bucket. Of the call's fence only the epoch need be set.
func (s *Store) Reset(ctx context.Context, c algorithms.Reset) (algorithms.Cleared, error) {
	r := run[algorithms.Reset, algorithms.Cleared](ctx, s, []algorithms.Reset{c})
	return r[0].Value, r[0].Err
}

// fenced is a pointer to a call of a guarded script.
type fenced[C any] interface {
	*C
	Fenced() *algorithms.Fence
}

// answer is the answer of a guarded script.
type answer interface{ Answered() algorithms.Head }

// run completes the fences of calls of a guarded script and runs them. An answer from a server with
// other data than the store was opened on becomes StatusUnknown. A call names the periods of a
// calendar around the node's clock. If the store's time is in none of them, run sends the call once
// more, now that it knows the time.
func run[C call[R], R answer, P fenced[C]](ctx context.Context, s *Store, calls []C) []Result[R] {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return runWithin[C, R, P](ctx, s, calls)
}

// runWithin is run with the deadline of ctx.
func runWithin[C call[R], R answer, P fenced[C]](ctx context.Context, s *Store, calls []C) []Result[R] {
	results := runOnce[C, R, P](ctx, s, calls)
	for i := range results {
		if results[i].Value.Answered().Status == algorithms.StatusCalendar {
			results[i] = runOnce[C, R, P](ctx, s, calls[i:i+1])[0]
		}
	}
	return results
}

func runOnce[C call[R], R answer, P fenced[C]](ctx context.Context, s *Store,
	calls []C) []Result[R] {
	id := s.identity()
	withheld := s.withheld.Load() || s.isOver(id)
	results, ops, sent := make([]Result[R], len(calls)), make([]Op[C, R], len(calls)),
		make([]Call, 0, len(calls))
	for i := range calls {
		op := &ops[i]
		op.Call, op.keys = calls[i], calls[i].Keys()
		shard, err := shardOf(op.Script(), op.keys)
		if err == nil && withheld {
			err = &Refused{Call: op.Script().Name, Status: algorithms.StatusUnknown}
		}
		if err != nil {
			results[i].Err = err
			continue
		}
		fence := P(&op.Call).Fenced()
		*fence = s.fence(shard, id, *fence)
		sent = append(sent, Call{Shard: shard, Op: op, Identify: id.replids[shard] != ""})
	}
	var replies []Reply
	if len(sent) > 0 {
		replies = s.servers.Exec(ctx, sent)
	}
	for i := range results {
		if results[i].Err != nil {
			continue
		}
		results[i] = countsFor(&ops[i], sent[0], replies[0], id)
		s.saw(sent[0].Shard, results[i].Value.Answered().Now)
		if results[i].Err == nil && s.isOver(id) { // after saw: see Confirm
			results[i] = Result[R]{Err: &Refused{Call: ops[i].Script().Name, Status: algorithms.StatusUnknown}}
		}
		s.heeds(results[i].Err)
		sent, replies = sent[1:], replies[1:]
	}
	return results
}

func (s *Store) heeds(outcome error) {
	if s.heed != nil {
		s.heed(outcome)
	}
}

// countsFor turns a server's reply into the call's result for a node that opened the store as id.
// A reply from other data reads as StatusUnknown. A status that is not OK becomes an error here.
func countsFor[C call[R], R answer](op *Op[C, R], sent Call, r Reply, id *identity) Result[R] {
	var failure *Error
	switch {
	case errors.As(r.Err, &failure):
		return Result[R]{Err: r.Err}
	case !id.counts(sent.Shard, r.Replid):
		r.Err = op.Read(strangers)
	}
	if r.Err == nil {
		r.Err = refused(op.Script(), op.Answer.Answered())
	}
	return Result[R]{op.Answer, r.Err}
}
