package store

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
)

// modelName stands in errors where a server has its host and port.
const modelName = "in memory"

// Model is a model of Store, for simulators: the same methods with the same results, of a server that is a ModelServer,
// synchronous, without connections, goroutines or timers. How a store is opened, and which answers count, is what Store
// has too (session); only what the scripts do is the twin's, which package algorithms holds equal to them.
//
// It differs from a Store in that secrets can be foretold, so that a run can be repeated. Not safe for concurrent use.
type Model struct {
	session
	server *ModelServer
	closed bool
}

// NewModel returns a node's way to a server; now is the node's wall clock.
func NewModel(server *ModelServer, now func() time.Time) *Model {
	m := &Model{server: server, session: session{address: Address{servers: []string{modelName}}, shards: Shards{Whole}, now: now,
		seen: newSeen(Shards{Whole})}}
	m.tokens = m
	m.newSecret = func() string { return m.server.newSecret() }
	return m
}

// SetServer sends all further calls to another server, as after a failover. What the node knows of the store stays.
func (m *Model) SetServer(server *ModelServer) { m.server = server }

// Close ends the use of the store: all further calls fail.
func (m *Model) Close() error {
	m.closed = true
	return nil
}

// Deadline is Store.Deadline; a model needs no time.
func (m *Model) Deadline() time.Duration { return DefaultTimeout }

// Reach is Store.Reach.
func (m *Model) Reach(ctx context.Context, _ Shard) error {
	return m.visit(ctx, "ping", func(int64) {})
}

// Size is Store.Size: a model does not say.
func (m *Model) Size(context.Context) (Size, error) { return Size{}, nil }

// TryRights is Store.TryRights; a model refuses nothing.
func (m *Model) TryRights(context.Context) error { return nil }

// Eviction is Store.Eviction.
func (m *Model) Eviction(ctx context.Context) (string, error) {
	if err := m.visit(ctx, "read maxmemory-policy", func(int64) {}); err != nil {
		return "", err
	}
	return NoEviction, nil
}

// Decide is Store.Decide.
func (m *Model) Decide(ctx context.Context, calls []algorithms.Decide) []Result[algorithms.Decided] {
	results := ask(ctx, m, algorithms.DecideScript, calls, func(now int64, c algorithms.Decide) algorithms.Decided {
		c.Fence = m.guard(c.Buckets[0].Key, c.Fence)
		return m.server.decide(now, c)
	})
	for i := range results {
		m.saw(Whole, results[i].Value.Now)
	}
	return results
}

// Lend is Store.Lend.
func (m *Model) Lend(ctx context.Context, calls []algorithms.Lend) []Result[algorithms.Given] {
	results := ask(ctx, m, algorithms.LendScript, calls, func(now int64, c algorithms.Lend) algorithms.Given {
		c.Fence = m.guard(c.Key, c.Fence)
		return m.server.twin.Lend(now, c)
	})
	for i := range results {
		m.saw(Whole, results[i].Value.Now)
	}
	return results
}

// Credit is Store.Credit.
func (m *Model) Credit(ctx context.Context, calls []algorithms.Credit) []Result[algorithms.Credited] {
	results := ask(ctx, m, algorithms.CreditScript, calls, func(now int64, c algorithms.Credit) algorithms.Credited {
		c.Fence = m.guard(c.Key, c.Fence)
		return m.server.twin.Credit(now, c)
	})
	for i := range results {
		m.saw(Whole, results[i].Value.Now)
	}
	return results
}

// Inspect is Store.Inspect.
func (m *Model) Inspect(ctx context.Context, c algorithms.Inspect) (algorithms.Inspected, error) {
	r := ask(ctx, m, algorithms.InspectScript, []algorithms.Inspect{c}, func(now int64, c algorithms.Inspect) algorithms.Inspected {
		c.Fence = m.guard(c.Key, c.Fence)
		return m.server.twin.Inspect(now, c)
	})
	return r[0].Value, r[0].Err
}

// Refund is Store.Refund.
func (m *Model) Refund(ctx context.Context, c algorithms.Refund) (algorithms.Refunded, error) {
	r := ask(ctx, m, algorithms.RefundScript, []algorithms.Refund{c}, func(now int64, c algorithms.Refund) algorithms.Refunded {
		c.Fence = m.guard(c.Receipt, c.Fence)
		return m.server.refund(now, c)
	})
	return r[0].Value, r[0].Err
}

// Reset is Store.Reset.
func (m *Model) Reset(ctx context.Context, c algorithms.Reset) (algorithms.Cleared, error) {
	r := ask(ctx, m, algorithms.ResetScript, []algorithms.Reset{c}, func(now int64, c algorithms.Reset) algorithms.Cleared {
		c.Fence = m.guard(c.Key, c.Fence)
		return m.server.twin.Reset(now, c)
	})
	return r[0].Value, r[0].Err
}

// Recall is Store.Recall.
func (m *Model) Recall(ctx context.Context, calls []algorithms.Recall) []Result[algorithms.Recalled] {
	return ask(ctx, m, algorithms.RecallScript, calls, func(now int64, c algorithms.Recall) algorithms.Recalled {
		c.Fence = m.guard(c.Key, c.Fence)
		return m.server.twin.Recall(now, c)
	})
}

// Restore is Store.Restore.
func (m *Model) Restore(ctx context.Context, calls []algorithms.Restore) []Result[algorithms.Restored] {
	return ask(ctx, m, algorithms.RestoreScript, calls, func(now int64, c algorithms.Restore) algorithms.Restored {
		c.Fence = m.guard(c.Key, c.Fence)
		return m.server.twin.Restore(now, c)
	})
}

// Book is Store.Book.
func (m *Model) Book(ctx context.Context, calls []algorithms.Book) []Result[algorithms.Booked] {
	return ask(ctx, m, algorithms.BookScript, calls, func(now int64, c algorithms.Book) algorithms.Booked {
		c.Fence = m.guard(c.Key, c.Fence)
		return m.server.twin.Book(now, c)
	})
}

// trip begins a round trip to the server of now.
func (m *Model) trip(ctx context.Context) (runs bool, err error) {
	if m.closed {
		return false, redis.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return m.server.trip()
}

// ask runs calls in order, in one round trip. What a server answers counts as what a Store's pipeline gets: nothing if
// the store was opened on other data, though its scripts have run.
func ask[C call[R], R any](ctx context.Context, m *Model, script algorithms.Script, calls []C, run func(now int64, c C) R) []Result[R] {
	results := make([]Result[R], len(calls))
	if len(calls) == 0 {
		return results
	}
	runs, lost := m.trip(ctx)
	if runs && lost == nil {
		lost = m.server.serve(len(calls))
	}
	held, now := m.standing(), m.server.clock()
	for i, c := range calls {
		r := &results[i]
		shard, err := shardOf(script, c.Keys())
		if err != nil {
			r.Err = err
			continue
		}
		ours := shard == Whole // another's token there is none
		if runs && ours {
			r.Value = run(now, c)
		}
		switch {
		case lost != nil:
			*r = Result[R]{Err: failed(modelName, "script "+script.Name, lost)}
		case !ours || !held.counts(shard, m.server.replid):
			r.Value, r.Err = c.Parse(strangers)
		}
	}
	return results
}

// visit runs something other than a guarded script, in one round trip.
func (m *Model) visit(ctx context.Context, name string, run func(now int64)) error {
	runs, lost := m.trip(ctx)
	if runs {
		run(m.server.clock())
	}
	if lost != nil {
		return failed(modelName, name, lost)
	}
	return nil
}

func (m *Model) look(ctx context.Context, node string) (looks, error) {
	l := look{shard: Whole, at: modelName}
	err := m.visit(ctx, "open the store", func(now int64) {
		l.Opened, l.server = m.server.twin.Open(now, onlyLook(node)), m.server.replid
		l.apart = time.UnixMicro(now).Sub(m.now())
	})
	return looks{l}, err
}

func (m *Model) openToken(ctx context.Context, _ Shard, c algorithms.Open) (o algorithms.Opened, err error) {
	err = m.visit(ctx, algorithms.OpenScript.Name, func(now int64) { o = m.server.twin.Open(now, c) })
	return o, err
}

func (m *Model) adoptToken(ctx context.Context, _ Shard, c algorithms.Adopt) (a algorithms.Adopted, err error) {
	err = m.visit(ctx, algorithms.AdoptScript.Name, func(int64) { a = m.server.twin.Adopt(c) })
	return a, err
}

func (m *Model) noteToken(ctx context.Context, _ Shard, c algorithms.Note) (n algorithms.Noted, err error) {
	err = m.visit(ctx, algorithms.NoteScript.Name, func(int64) { n = m.server.twin.Note(c) })
	return n, err
}

func (m *Model) beatToken(ctx context.Context, _ Shard, c algorithms.Beat) (b algorithms.Beaten, err error) {
	err = m.visit(ctx, algorithms.BeatScript.Name, func(now int64) { b = m.server.twin.Beat(now, c) })
	return b, err
}
