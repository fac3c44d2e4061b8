package admit

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
)

const prefetched = "name: minute, limit: 1000, window: 1m, consistency: prefetch"

// fromMemory counts admitted requests, and those of them that the store did not decide.
type fromMemory struct{ admitted, spent atomic.Int64 }

// decided counts a decision. It fails the test if one from memory is not at a time of its cell that
// the store's clock could show.
func (c *fromMemory) decided(t *testing.T, n *Limiter, q Request, window time.Duration) {
	d := n.must(t, q)
	if !d.Allowed {
		return
	}
	c.admitted.Add(int64(q.Cost))
	if !d.FromMemory {
		return
	}
	c.spent.Add(int64(q.Cost))
	if algorithms.CellAt(d.At, window.Microseconds()) != d.Cell || d.At > now() ||
		d.At < now().Add(-held.Life.Microseconds()) || d.Limit != "minute" || d.Receipt != "" ||
		d.Reason != WithinLimit || d.Remaining < 0 || d.Remaining > 1000 {
		t.Errorf("at %d: %+v", now(), d)
	}
}

// flood has callers ask every so often for a while, and calls each decision's node by the time that
// has passed.
func flood(callers int, every, lasts time.Duration, ask func(passed time.Duration)) {
	begun := time.Now()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for time.Since(begun) < lasts {
				ask(time.Since(begun))
				time.Sleep(every)
			}
		})
	}
	all.Wait()
}

// holds returns what a node holds of a bucket.
func (l *Limiter) holds(t *testing.T, q Request) quantity.Units {
	t.Helper()
	units, _ := l.Remembers(l.tenure.Rules().Match(asked(q))[0])
	return units
}

// prefetched returns what a metric of prefetched units counts.
func (l *Limiter) prefetched(t *testing.T, what string) int {
	t.Helper()
	all := prometheus.NewRegistry()
	all.MustRegister(l.chunks.Collectors()...)
	families, err := all.Gather()
	suite.Must(t, err)
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "quotad_prefetched_"+what })
	return int(families[i].GetMetric()[0].GetCounter().GetValue())
}

// wantAccounted fails the test unless all units that were prefetched were spent, given back or
// stranded, or are held.
func (l *Limiter) wantAccounted(t *testing.T, held quantity.Units) {
	t.Helper()
	got, spent, back, stranded := l.prefetched(t, "units_total"), l.prefetched(t, "spent_units_total"),
		l.prefetched(t, "returned_units_total"), l.prefetched(t, "stranded_units_total")
	if got != spent+back+stranded+int(held) || spent == 0 {
		t.Errorf("%d prefetched; %d spent, %d given back, %d stranded, %d held", got, spent, back,
			stranded, held)
	}
}

// Many callers flood one node: exactly the limit is admitted, much of it without asking the store.
func TestPrefetchAdmitsExactlyTheLimit(t *testing.T) {
	for _, kind := range []string{"fixed_window", "sliding_window_counter"} {
		counted(t, here, []string{prefetched + ", algorithm: " + kind},
			func(t *testing.T, n *Limiter, s *countedServer) {
				s.takes.Store(int64(200 * time.Microsecond))
				var c fromMemory
				flood(64, 20*time.Millisecond, 3*time.Second, func(time.Duration) {
					c.decided(t, n, request("a"), time.Minute)
				})
				if c.admitted.Load() != 1000 || c.spent.Load() < 300 {
					t.Errorf("%s: %d admitted, %d of them from memory", kind, c.admitted.Load(),
						c.spent.Load())
				}
				n.wantAccounted(t, 0)
				if got := n.prefetched(t, "spent_units_total"); got != int(c.spent.Load()) {
					t.Errorf("%d counted as spent, %d were", got, c.spent.Load())
				}
			})
	}
}

// TestALimiterSeesSuspension: the monotonic clock of its machine stands still, the wall clock does not.
func TestALimiterSeesSuspension(t *testing.T) {
	monotonic, wall := time.Hour, time.Unix(1_800_000_000, 0)
	c := clockOf(Config{Elapsed: func() time.Duration { return monotonic }, Now: func() time.Time { return wall }})
	before := c.Elapsed()
	if wall = wall.Add(time.Minute); c.Elapsed() != before+time.Minute {
		t.Errorf("%v after a minute of suspension", c.Elapsed()-before)
	}
}

// Traffic moves from one node of a region to the other while it uses up the limit.
func TestPrefetchFollowsTraffic(t *testing.T) {
	for _, tc := range []struct {
		consistency string
		least       int64
	}{{"prefetch", 990}, {"exact", 1000}} {
		d := documents.Parse(t, 1, alone,
			"name: minute, limit: 1000, window: 1m, consistency: "+tc.consistency)
		started(t, d, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
			var all fromMemory
			var turn atomic.Int64
			flood(64, 20*time.Millisecond, 2*time.Second, func(passed time.Duration) {
				n := c.running["us/n1"]
				if (turn.Add(1)*37)%100 < passed.Milliseconds()/4 {
					n = c.running["us/n2"]
				}
				all.decided(t, n.Limiter, request("a"), time.Minute)
			})
			if got := all.admitted.Load(); got > 1000 || got < tc.least {
				t.Errorf("%s: %d admitted of 1000, at least %d should be", tc.consistency, got,
					tc.least)
			}
			if (all.spent.Load() > 0) != (tc.consistency == "prefetch") {
				t.Errorf("%s: %d from memory", tc.consistency, all.spent.Load())
			}
			if tc.consistency == "prefetch" {
				for _, n := range c.running {
					n.wantAccounted(t, n.holds(t, request("a")))
				}
			}
		})
	}
}

// warm has a node hold units of a bucket, by asking for 4 units each millisecond. It returns how
// many were admitted.
func warm(t *testing.T, n *Limiter, q Request) (admitted quantity.Units) {
	t.Helper()
	q.Cost = 4
	for range 50 {
		if n.must(t, q).Allowed {
			admitted += 4
		}
		time.Sleep(time.Millisecond)
	}
	synctest.Wait()
	if n.holds(t, q) == 0 {
		t.Fatal("the node holds nothing, which shows nothing")
	}
	return admitted
}

// Which requests the store decides although the node holds enough.
func TestWhatReachesTheStore(t *testing.T) {
	limits := []string{prefetched, "name: exact, key: [account, exact], limit: 1000, window: 1m",
		"name: other, key: [account, other], limit: 1000, window: 1m, consistency: prefetch"}
	repeated, exact, other := request("a"), request("a"), request("a")
	repeated.ID = "x"
	exact.Descriptors = map[string]string{"account": "a", "exact": "x"}
	other.Descriptors = map[string]string{"account": "a", "other": "x"}
	for _, tc := range []struct {
		name     string
		question Request
		asks     bool
	}{
		{"a plain one", request("a"), false},
		{"one with an id", repeated, true},
		{"one that asks for a receipt", cost("a", 1), true},
		{"one with an exact limit", exact, true},
		{"one with a limit of which nothing is held", other, true},
		{"one of more than is held", units("a", 300), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			counted(t, here, limits, func(t *testing.T, n *Limiter, s *countedServer) {
				warm(t, n, request("a"))
				before, held := s.items.Load(), n.holds(t, request("a"))
				d := n.must(t, tc.question)
				if !d.Allowed || d.FromMemory == tc.asks || (s.items.Load() > before) != tc.asks {
					t.Errorf("%+v", d)
				}
				if got := n.holds(t, request("a")); tc.asks && got < held {
					t.Errorf("%d held of %d", got, held)
				}
				if d, err := n.Peek(t.Context(), request("a")); err != nil || d.FromMemory {
					t.Errorf("a peek: %+v, %v", d, err)
				}
			})
		})
	}
}

// For requests that only the store may decide, nothing is held: it would be missing elsewhere.
func TestNothingIsHeldThatCannotBeSpent(t *testing.T) {
	limits := []string{prefetched, "name: exact, key: [account, exact], limit: 1000, window: 1m"}
	exact := request("a")
	exact.Descriptors = map[string]string{"account": "a", "exact": "x"}
	for _, q := range []Request{exact, cost("a", 1), named("a", "x", 1)} {
		counted(t, here, limits, func(t *testing.T, n *Limiter, _ *countedServer) {
			for i := range 100 {
				if q.ID != "" {
					q.ID = fmt.Sprint(i)
				}
				n.must(t, q)
				time.Sleep(time.Millisecond)
			}
			if got := n.prefetched(t, "units_total"); got != 0 {
				t.Errorf("%+v: %d units were prefetched", q, got)
			}
		})
	}
}

// While the store is away, a chunk is spent, and what cannot be given back stays charged.
func TestPrefetchWithoutAStore(t *testing.T) {
	started(t, documents.Parse(t, 1, alone, prefetched+", on_store_failure: deny"),
		[]string{"us/n1"}, func(t *testing.T, c *cluster) {
			n := c.running["us/n1"]
			admitted := warm(t, n.Limiter, request("a"))
			stored := n.stored(t)
			c.setDown(true)
			for n.check(t, request("a")).FromMemory {
				admitted++
			}
			time.Sleep(2 * held.Life)
			c.setDown(false)
			time.Sleep(2 * held.Life)
			if got := n.stored(t); got != stored {
				t.Errorf("%d stored, was %d", got, stored)
			}
			n.wantAccounted(t, 0)
		})
}

// A caller that is kept waiting after it spent units was decided when it spent them, in the chunk's
// cell, however late it is answered.
func TestALateAnswerNamesWhenItWasDecided(t *testing.T) {
	counted(t, here, []string{prefetched}, func(t *testing.T, n *Limiter, _ *countedServer) {
		warm(t, n, request("a"))
		spent := n.elapsed
		n.elapsed = func() time.Duration { return spent() + time.Hour }
		var c fromMemory
		c.decided(t, n, request("a"), time.Minute)
		if c.spent.Load() != 1 {
			t.Error("the store was asked, which shows nothing")
		}
	})
}

func TestSpendAllocatesNothing(t *testing.T) {
	counted(t, here, []string{"name: minute, limit: 1000000000, window: 1m, consistency: prefetch"},
		func(t *testing.T, n *Limiter, _ *countedServer) {
			q := units("a", 1_000_000)
			for range 20 {
				n.must(t, q)
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			q.Cost = 1
			if allocations := testing.AllocsPerRun(1000, func() {
				if _, paid := n.spendAtOnce(&q); !paid {
					t.Fatal("nothing is held")
				}
			}); allocations != 0 {
				t.Errorf("%v allocations", allocations)
			}
		})
}
