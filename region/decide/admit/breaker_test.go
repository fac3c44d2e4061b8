package admit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/memory/store"
)

// A request that the store leaves without an answer is decided without it at its deadline, not
// before and not later.
func TestDecidedAtTheDeadline(t *testing.T) {
	for behaviour, want := range map[string]Reason{"deny": StoreFailure, "local": StoreFailureLocal,
		"allow": StoreFailureAllowed} {
		bubble.Test(t, func(t *testing.T) {
			n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
				"name: minute, limit: 100, window: 1m, lending_limit: 0.5, on_store_failure: "+
					behaviour))
			for _, deadline := range []time.Duration{50 * time.Millisecond, time.Second} {
				n.deadline, n.queue.deadline, n.queue.lanes.all[0].pace = deadline, deadline, newPace(deadline, underWay)
				begun := time.Now()
				d, err := n.Check(t.Context(), request("a"))
				if err != nil || d.Reason != want || time.Since(begun) != deadline {
					t.Errorf("%s: after %v, deadline %v: %+v, %v", behaviour, time.Since(begun),
						deadline, d, err)
				}
				if groups := group([]waiting{n.queue.lanes.all[0].first(t)}); len(groups) != 0 {
					t.Error("it is sent although nobody waits for it any more")
				}
			}
		})
	}
}

// A request for which nobody waits any more is not sent. Other requests of the same batch are.
func TestWhoeverLeftIsNotCharged(t *testing.T) {
	started(t, documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m"),
		[]string{"us/n1"}, func(t *testing.T, c *cluster) {
			n := c.running["us/n1"]
			r := n.tenure.Rules()
			ctx, cancel := context.WithCancel(t.Context())
			idle := newBatcher(shared{}, time.Second, underWay) // nothing serves it
			left := &Queue{lanes: &lanes{all: []*batcher{idle}, wakes: newWakes()}, breakers: n.queue.breakers, deadline: time.Second}
			w := waiting{rules: r, applied: r.Match(asked(request("a"))), cost: 30, commit: true}.waits(time.Second)
			gone := make(chan error)
			go func() {
				_, err := left.ask(ctx, w)
				gone <- err
			}()
			synctest.Wait()
			cancel()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			answer := make(chan answered, 1)
			w.answer, w.cost = answer, 5
			n.queue.lanes.all[0].decide(t.Context(), []waiting{idle.first(t), w})
			if a := <-answer; a.err != nil || a.decided.Buckets[0].Used != 5 {
				t.Errorf("used %d, only 5 had somebody waiting: %+v", a.decided.Buckets[0].Used, a)
			}
		})
}

// The answer to a request for which nobody waits any more, which was on its way already, reaches no
// other request.
func TestALateAnswerIsNobodyElses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere, "name: minute, limit: 100, window: 1m"))
		r, idle := n.tenure.Rules(), newBatcher(shared{}, time.Second, underWay)
		limiter := &Queue{lanes: &lanes{wakes: newWakes(), all: []*batcher{idle}}, breakers: n.queue.breakers, deadline: time.Second}
		ask := func(ctx context.Context) <-chan answered {
			said := make(chan answered, 1)
			go func() {
				a, err := limiter.ask(ctx, waiting{rules: r, applied: r.Match(asked(request("a"))),
					cost: 1, commit: true}.waits(time.Second))
				if err == nil {
					said <- a
				}
				close(said)
			}()
			synctest.Wait()
			return said
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := ask(ctx)
		late := idle.first(t)
		cancel()
		if a, ok := <-left; ok {
			t.Fatalf("%+v, want nothing", a)
		}
		stays := ask(t.Context())
		late.answer <- answered{index: 1}
		synctest.Wait()
		idle.first(t).answer <- answered{index: 2}
		if a := <-stays; a.index != 2 {
			t.Errorf("answer %d, want its own, 2", a.index)
		}
	})
}

// What queued before the breaker tripped is not sent after it.
func TestQueuedWhenTheBreakerTrips(t *testing.T) {
	started(t, documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m"),
		[]string{"us/n1"}, func(t *testing.T, c *cluster) {
			n := c.running["us/n1"]
			answer := make(chan answered, 1)
			r := n.tenure.Rules()
			n.queue.breakers.trip(store.Whole)
			n.queue.lanes.all[0].decide(t.Context(),
				[]waiting{{rules: r, applied: r.Match(asked(request("a"))), cost: 30, commit: true,
					answer: answer}})
			if a := <-answer; !errors.Is(a.err, errOutOfReach) {
				t.Errorf("answered %+v", a)
			}
			c.within(time.Second, "a probe",
				func() bool { return !n.queue.breakers.tripped(store.Whole) })
			if d := n.check(t, request("a")); d.Remaining != 99 {
				t.Errorf("it was charged all the same: %+v", d)
			}
		})
}

// Each shard has a breaker of its own: what lies in the others is decided by the store.
func TestBreakersOfShards(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		first, second := store.Shard(store.Prefix+":0}"), store.Shard(store.Prefix+":1}")
		_, way := lab.NewTwin(now, "a").Connect(time.Now)
		n := on(t, store.New(store.Parts{Servers: way, Shards: store.Shards{first, second},
			Timeout: time.Second}), 1,
			documents.Parse(t, 1, hereAndThere,
				"name: minute, limit: 1000, window: 1m, lending_limit: 0.5"))
		r := n.tenure.Rules()
		n.queue.breakers.trip(first)
		waited := map[store.Shard]bool{}
		for _, account := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
			q := request(account)
			shard := store.ShardOf(r.Match(q.Domain, q.Descriptors)[0].Target.Key)
			begun := time.Now()
			if _, err := n.Check(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			waited[shard] = true
			if took, want := time.Since(begun), map[store.Shard]time.Duration{first: 0,
				second: n.deadline}[shard]; took != want {
				t.Errorf("account %s in shard %s waited %v, want %v", account, shard, took, want)
			}
		}
		if len(waited) != 2 {
			t.Errorf("shards %v: the test shows nothing", waited)
		}
	})
}
