//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

// TestPaceOfAsksWhereUseFades: a region holds all that the others do not need, and wants more. It
// asks at the pace that its lenders name, not at the faster pace that suits lenders whose use
// fades.
func TestPaceOfAsksWhereUseFades(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog} {
		t.Run(string(kind), func(t *testing.T) {
			const seconds = 10
			c := newClusterOf(t, 1, kind, allocator.Second, 400, 400, 200)
			c.judged()
			c.demandFor(Options{}, 1, 950, 60, 20)
			c.run(c.now + 3*allocator.Second)
			before := c.stats().Asks
			c.run(c.now + seconds*allocator.Second)
			asks := (c.stats().Asks - before) / seconds
			t.Logf("%d asks a second", asks)
			if asks > 100 {
				t.Errorf("%d asks a second, want at most 100", asks)
			}
			if v := c.judge.Verdict(); !v.Holds() {
				t.Error(v)
			}
		})
	}
}

// TestALoneRegionAsksNobody: its demand is above the limit, and there is nobody to ask.
func TestALoneRegionAsksNobody(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			c := newClusterOf(t, 1, kind, allocator.Second, 100)
			c.judged()
			c.demandFor(Options{}, 1, 200)
			c.run(c.now + 3*allocator.Second)
			if asks := c.stats().Asks; asks > 0 || c.admitted() == 0 {
				t.Errorf("%d asks, %d admitted", asks, c.admitted())
			}
		})
	}
}

// TestWaitingRequestsAskOnce: requests wait for rights (on_exhausted: borrow) and there are none to
// be had. A further request does not ask every peer again while an answer is under way.
func TestWaitingRequestsAskOnce(t *testing.T) {
	c := newCluster(t, 1, allocator.Second, 20, 20, 20, 20, 20)
	for _, r := range c.regions {
		r.borrows = true
	}
	c.demandFor(Options{}, 1, 60, 60, 20, 20, 20)
	c.run(c.now + 3*allocator.Second)
	before := c.stats().Asks
	c.run(c.now + 10*allocator.Second)
	if asks := (c.stats().Asks - before) / 10; asks > 50 {
		t.Errorf("%d asks a second of five regions, want at most 50", asks)
	}
}
