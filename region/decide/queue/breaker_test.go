package queue

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/region/memory/store"
)

// A request for which nobody waits any more is not sent, as its caller gave up or the store's
// deadline is over. Other requests of the same batch are.
func TestWhoeverLeftIsNotCharged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := idle(t, minute)
		ctx, cancel := context.WithCancel(t.Context())
		for _, tc := range []struct {
			ctx   context.Context
			gives func()
			want  error
		}{{ctx, cancel, context.Canceled}, {t.Context(), func() { time.Sleep(n.deadline) }, errLate}} {
			gone := make(chan error)
			w := n.of("a")
			w.Cost = 30
			go func() {
				a, err := n.Decide(tc.ctx, w)
				gone <- cmp.Or(err, a.Err)
			}()
			synctest.Wait()
			tc.gives()
			if err := <-gone; !errors.Is(err, tc.want) || time.Since(w.Came) > n.deadline {
				t.Errorf("%v after %v, want %v", err, time.Since(w.Came), tc.want)
			}
		}
		n.opened(t) // what waits is carried now
		if a, err := n.Decide(t.Context(), n.of("a")); err != nil || a.Err != nil || a.Decided.Buckets[0].Used != 1 {
			t.Errorf("%+v, %v: only one unit has somebody waiting", a, err)
		}
	})
}

// The answer to a request for which nobody waits any more, which was on its way already, reaches no
// other request.
func TestALateAnswerIsNobodyElses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := idle(t, minute)
		asks := func(ctx context.Context) <-chan Answer {
			said := make(chan Answer, 1)
			go func() {
				if a, err := n.Decide(ctx, n.of("a")); err == nil {
					said <- a
				}
				close(said)
			}()
			synctest.Wait()
			return said
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := asks(ctx)
		late := n.lane().first(t)
		cancel()
		if a, ok := <-left; ok {
			t.Fatalf("%+v, want nothing", a)
		}
		stays := asks(t.Context())
		late.answer <- Answer{Index: 1}
		synctest.Wait()
		n.lane().first(t).answer <- Answer{Index: 2}
		if a := <-stays; a.Index != 2 {
			t.Errorf("answer %d, want its own, 2", a.Index)
		}
	})
}

// What queued before the breaker tripped is not sent after it.
func TestQueuedWhenTheBreakerTrips(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, s := busy(t)
		answer := make(chan Answer, 1)
		w := n.of("a")
		w.answer = answer
		n.breakers.trip(store.Whole)
		n.lane().decide(t.Context(), []Ask{w})
		if a := <-answer; !errors.Is(a.Err, errOutOfReach) {
			t.Errorf("answered %+v", a)
		}
		time.Sleep(probeEvery)
		synctest.Wait()
		if n.Tripped(store.Whole) || s.Decided.Load() != 0 {
			t.Errorf("%d requests were decided before the server was probed", s.Decided.Load())
		}
		if a, err := n.Decide(t.Context(), n.of("a")); err != nil || a.Err != nil || a.Decided.Buckets[0].Used != 1 {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// Each shard has a breaker of its own: what lies in the others is decided by the store.
func TestBreakersOfShards(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		first, second := store.Shard(store.Prefix+":0}"), store.Shard(store.Prefix+":1}")
		_, way := lab.NewTwin(now, "a").Connect(time.Now)
		n := on(t, store.New(store.Parts{Servers: way, Shards: store.Shards{first, second},
			Timeout: time.Second}), minute)
		n.breakers.trip(first)
		for shard, want := range map[store.Shard]struct {
			after time.Duration
			err   error
		}{first: {0, errOutOfReach}, second: {n.deadline, errLate}} {
			for _, account := range n.accountsIn(shard, 3) {
				begun := time.Now()
				a, err := n.Decide(t.Context(), n.of(account))
				if took := time.Since(begun); err != nil || !errors.Is(a.Err, want.err) || took != want.after {
					t.Errorf("account %s in shard %s: %v, %v after %v", account, shard, a.Err, err, took)
				}
			}
		}
	})
}
