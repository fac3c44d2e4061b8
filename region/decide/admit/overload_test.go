package admit

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/store"
)

// overloadLimits are what attackers and victims use.
var overloadLimits = []string{
	"name: flood, domain: flood, limit: 1000000000, window: 1h",
	"name: victim, limit: 1000000, window: 1h, on_store_failure: deny",
	"name: tight, domain: tight, limit: 10, window: 1h, on_store_failure: allow",
	"name: part, domain: part, limit: 1000, window: 1h, on_store_failure: local",
}

// busyNode returns a node that decides with a store that needs 300 µs for a script call, so that
// tests need not ask so often.
func busyNode(t *testing.T) (*Limiter, *lab.Busy) {
	t.Helper()
	_, way := lab.NewTwin(now, "r").Connect(time.Now)
	s := lab.NewBusy(way)
	n := on(t, store.New(store.Parts{Servers: s, NewSecret: func() string { return "secret" }}), 1,
		documents.Parse(t, 1, []string{"here: {weight: 1}"}, overloadLimits...))
	n.opened(t)
	return n, s
}

// opened opens the store, and has what queues for it carried until the test ends.
func (l *Limiter) opened(t *testing.T) {
	t.Helper()
	if err := l.tenure.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	runs.Go(func() { l.queue.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		runs.Wait()
	})
	synctest.Wait()
}

// outcomes counts decisions by their reason.
type outcomes struct {
	mu     sync.Mutex
	reason map[Reason]int
	stored int // decided by the store, in time
	all    int
	units  int
}

func (c *outcomes) check(t *testing.T, n *Limiter, q Request) {
	begun := time.Now()
	d, err := n.Check(t.Context(), q)
	took := time.Since(begun)
	if err != nil {
		t.Error(err)
	}
	c.decided(d, took <= n.deadline)
}

func (c *outcomes) decided(d Decision, inTime bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == nil {
		c.reason = map[Reason]int{}
	}
	c.reason[d.Reason]++
	c.all++
	if d.At != 0 && inTime {
		c.stored++
	}
	if d.Allowed {
		c.units++
	}
}

func (c *outcomes) storeFailures() int {
	return c.reason[StoreFailure] + c.reason[StoreFailureLocal] + c.reason[StoreFailureAllowed]
}

// attack is what a caller asks for: key returns that of its number-th request.
type attack struct {
	name    string
	callers int
	batch   int
	domain  string
	caller  string
	key     func(number int) string
}

func distinct(number int) string { return strconv.Itoa(number) }

// floods has callers send batches, each as soon as the one before is answered and the pause over.
func (a attack) floods(t *testing.T, n *Limiter, pause, lasts time.Duration) *outcomes {
	var all outcomes
	var callers sync.WaitGroup
	var number atomic.Int64
	until := time.Now().Add(lasts)
	for i := range a.callers {
		callers.Go(func() {
			time.Sleep(pause * time.Duration(i) / time.Duration(a.callers))
			for time.Now().Before(until) {
				next := time.Now().Add(pause)
				batch := make([]Request, a.batch)
				for i := range batch {
					batch[i] = request(a.key(int(number.Add(1))))
					batch[i].Domain, batch[i].Caller = a.domain, a.caller
				}
				begun := time.Now()
				decisions, err := n.CheckBatch(t.Context(), batch)
				if err != nil {
					t.Error(err)
				}
				for _, d := range decisions {
					all.decided(d, time.Since(begun) <= n.wait)
				}
				time.Sleep(time.Until(next))
			}
		})
	}
	callers.Wait()
	return &all
}

// steady sends one request after the other at an even pace.
func steady(t *testing.T, n *Limiter, domain string, perSecond int, lasts time.Duration) *outcomes {
	var all outcomes
	var sent sync.WaitGroup
	for i := range int(lasts.Seconds() * float64(perSecond)) {
		sent.Go(func() {
			time.Sleep(time.Duration(i) * time.Second / time.Duration(perSecond))
			q := request("v" + strconv.Itoa(i%20))
			q.Domain = domain
			all.check(t, n, q)
		})
	}
	sent.Wait()
	return &all
}

// A caller that asks for little is decided by the store in time, whatever other callers ask for.
// Nothing counts as a failure of a store that answers. Limits that would be open or local without
// the store are not.
func TestOverloadTakesFromNobody(t *testing.T) {
	hot := func(int) string { return "hot" }
	attacks := []attack{
		{name: "one key", callers: 20, batch: 100, domain: "flood", key: hot},
		{name: "one key of the same limit", callers: 20, batch: 100, domain: "api", key: hot},
		{name: "batches of a thousand", callers: 2, batch: 1000, domain: "flood", key: distinct},
		{name: "another caller, the same limit", callers: 8, batch: 100, domain: "api",
			caller: "elsewhere", key: distinct},
	}
	for _, callers := range []int{2, 6, 8, 12} {
		attacks = append(attacks, attack{name: fmt.Sprintf("%d callers", callers), callers: callers,
			batch: 100, domain: "flood", key: distinct})
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n, s := busyNode(t)
				const lasts = time.Second
				var flood, victims, tight, part *outcomes
				var all sync.WaitGroup
				all.Go(func() { flood = a.floods(t, n, 25*time.Millisecond, lasts) })
				all.Go(func() { victims = steady(t, n, "api", 200, lasts) })
				all.Go(func() { tight = steady(t, n, "tight", 100, lasts) })
				all.Go(func() { part = steady(t, n, "part", 100, lasts) })
				all.Wait()
				for name, c := range map[string]*outcomes{"victims": victims, "tight": tight,
					"part": part} {
					if c.stored*100 < c.all*99 {
						t.Errorf("%s: %d of %d decided by the store in time: %v", name, c.stored,
							c.all, c.reason)
					}
				}
				for name, c := range map[string]*outcomes{"flood": flood, "victims": victims,
					"tight": tight, "part": part} {
					if c.storeFailures() > 0 {
						t.Errorf("%s: %v", name, c.reason)
					}
				}
				if n := tight.units; n > 20*10 {
					t.Errorf("%d admitted by 20 limits of 10", n)
				}
				l := n.queue.Load()
				if s.Late.Load() > 0 || l.Queued > 0 || l.Refused != (queue.Refused{}) {
					t.Errorf("%d round trips were late, %+v; %d of %d decided", s.Late.Load(), l,
						flood.stored, flood.all)
				}
			})
		})
	}
}

// At ten times the load that the store can bear, as many requests are decided as at its best.
func TestGoodputUnderOverload(t *testing.T) {
	at := func(callers int, key func(int) string) (decided int) {
		bubble.Test(t, func(t *testing.T) {
			n, _ := busyNode(t)
			a := attack{callers: callers, batch: 100, domain: "flood", key: key}
			decided = a.floods(t, n, 30*time.Millisecond, time.Second).stored
		})
		return decided
	}
	best := 0
	for _, callers := range []int{1, 2, 5, 10} { // 1 is as much as the store can do
		decided := at(callers, distinct)
		if decided*10 < best*9 {
			t.Errorf("%d callers: %d decided, at best %d", callers, decided, best)
		}
		best = max(best, decided)
		t.Logf("%d times what the store does: %d decided", callers, decided)
	}
	if best < 3_000 {
		t.Errorf("%d decided at best: the store has time for 3,333", best)
	}
}

// A store that stops answering under load is noticed within a deadline, and on_store_failure
// decides then.
func TestStoreStopsUnderOverload(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, s := busyNode(t)
		var all sync.WaitGroup
		a := attack{callers: 8, batch: 100, domain: "flood", key: distinct}
		all.Go(func() { a.floods(t, n, 25*time.Millisecond, time.Second) })
		time.Sleep(500 * time.Millisecond)
		if n.queue.Tripped(store.Whole) {
			t.Fatal("the store answers")
		}
		s.Stop(true)
		time.Sleep(n.deadline + time.Millisecond)
		if !n.queue.Tripped(store.Whole) {
			t.Errorf("the store has not answered for %v", n.deadline)
		}
		q := request("a")
		if d, err := n.Check(t.Context(), q); err != nil || d.Reason != StoreFailure {
			t.Errorf("%+v, %v", d, err)
		}
		all.Wait()
	})
}
