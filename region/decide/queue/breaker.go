package queue

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/store"
)

// breakers keep requests from servers that do not answer. The first call that fails trips the
// breaker of its shard. From then on requests on that shard are decided without the store at once,
// and a probe finds out when the server answers again. A call that is late while its server
// answered others does not count, because that server is busy.
type breakers struct {
	of    map[store.Shard]*breaker
	begun time.Time
	trips chan struct{} // holds a value after one was tripped
}

type breaker struct {
	atomic.Bool              // tripped
	heard       atomic.Int64 // when the server last answered, in nanoseconds after begun; 0: never
}

// probeEvery is how often a server that does not answer is probed.
const probeEvery = 50 * time.Millisecond

var errOutOfReach = errors.New("the store is out of reach")

// newBreakers returns those of some shards, by a clock that shows begun.
func newBreakers(all store.Shards, begun time.Time) breakers {
	b := breakers{of: map[store.Shard]*breaker{}, begun: begun.Add(-1), trips: make(chan struct{}, 1)}
	for _, shard := range all {
		b.of[shard] = &breaker{}
	}
	return b
}

// trip keeps requests from a shard until its server answers a probe.
func (b breakers) trip(s store.Shard) {
	b.of[s].Store(true)
	repeat.Signal(b.trips)
}

// anyTripped reports whether requests are kept from any shard.
func (b breakers) anyTripped() bool {
	for _, one := range b.of {
		if one.Load() {
			return true
		}
	}
	return false
}

// tripped reports whether requests are kept from a shard.
func (b breakers) tripped(s store.Shard) bool { return b.of[s].Load() }

// hear notes that the server of a shard has answered.
func (b breakers) hear(s store.Shard, now time.Time) { b.of[s].heard.Store(int64(now.Sub(b.begun))) }

// answers reports whether the server of a shard answers other calls, when a call sent at a given time
// was not answered when it was due. It does if it answered after that time and within the last half of the deadline. A
// server with work under way answers several times within a deadline.
//
// A process that lacks processor time may not have read the server's replies. It is taken to lack
// processor time if starved says so, or if it notices the end of the deadline too late. Then an
// answer within the last starvedDeadlines deadlines is enough.
func (b breakers) answers(s store.Shard, sent, due, now time.Time, deadline time.Duration,
	starved bool) bool {
	after := later(sent, now.Add(-deadline/2))
	if starved || now.Sub(due) > deadline/starvedPart {
		after = now.Add(-starvedDeadlines * deadline)
	}
	heard := b.of[s].heard.Load()
	return heard != 0 && heard > int64(after.Sub(b.begun))
}

// Tripped reports whether requests are kept from a shard, because its server does not answer.
func (q *Queue) Tripped(s store.Shard) bool { return q.breakers.tripped(s) }

// OutOfReach returns for each shard whether its requests are decided without the store, because the
// server does not answer.
func (q *Queue) OutOfReach() map[store.Shard]bool {
	all := make(map[store.Shard]bool, len(q.breakers.of))
	for shard, b := range q.breakers.of {
		all[shard] = b.Load()
	}
	return all
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// probe closes the breakers of servers that answer again, until ctx ends.
func (q *Queue) probe(ctx context.Context) {
	silent := map[store.Shard]time.Time{}
	repeat.While(ctx, q.breakers.trips, probeEvery, q.breakers.anyTripped, func() { q.TryAgain(ctx, silent) })
}

// TryAgain probes once each server that does not answer. silent holds since when each has not
// answered, and is kept by the caller between calls.
func (q *Queue) TryAgain(ctx context.Context, silent map[store.Shard]time.Time) {
	for _, shard := range q.store.Shards() {
		breaker := q.breakers.of[shard]
		if !breaker.Load() {
			continue
		}
		err := q.store.Reach(ctx, shard)
		if silent[shard].IsZero() {
			silent[shard] = q.now()
			q.log.Warn("the store does not answer: requests are decided as on_store_failure says",
				"shard", shard, "err", cmp.Or(err, errLate))
		}
		if err == nil {
			q.breakers.hear(shard, q.on.Now())
			breaker.Store(false)
			q.log.Info("the store answers again", "shard", shard, "after",
				q.now().Sub(silent[shard]).Round(time.Millisecond))
			delete(silent, shard)
		}
	}
}
