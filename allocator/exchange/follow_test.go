//go:build !race

package exchange

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestSlidingKindsFollowDemand: from 360 ms after a step of demand on, a sliding kind never admits
// more than 5 % less than one pooled limiter would, however long its window is. A window and a tick
// after the step, the region that wants more holds 95 % of its demand. (The counter's estimate may
// then still contain use from before the step.)
func TestSlidingKindsFollowDemand(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog} {
		for _, seconds := range []int64{1, 60} {
			t.Run(fmt.Sprint(kind, " ", seconds, " s"), func(t *testing.T) {
				if kind == algorithms.SlidingWindowLog {
					suite.Long(t)
				}
				t.Parallel()
				worst := int64(allocator.PPM)
				for seed := range uint64(8) {
					worst = min(worst, followed(t, kind, seconds*allocator.Second, seed))
				}
				t.Logf("at worst %.2f %% of the pooled limiter", float64(worst)*100/allocator.PPM)
				if worst < 950_000 {
					t.Errorf("at worst %.2f %% of the pooled limiter",
						float64(worst)*100/allocator.PPM)
				}
			})
		}
	}
}

// followed plays one step of demand. Each seed puts it an eighth of a window further into a cell.
// followed returns the smallest part of the pooled limiter's units that was admitted.
func followed(t *testing.T, kind algorithms.Kind, window int64, seed uint64) (worst int64) {
	c := newClusterOf(t, seed, kind, window, 400, 400, 200)
	c.pooled = new(quantity.Units)
	c.judged()
	c.demandFor(Options{}, window/allocator.Second, 380, 380, 180)
	c.run((c.now.Add(2*window) + 3*allocator.Second).Add(int64(seed) * window / 8))
	c.demandFor(Options{}, window/allocator.Second, 900, 60, 20)
	step := c.now
	c.run(step + 360_000)
	ours, pooled := c.admitted(), *c.pooled
	worst = allocator.PPM
	for c.now < step.Add(2*window)+2*allocator.Second {
		c.run(c.now.Add(window / 50))
		if got, want := c.admitted()-ours, *c.pooled-pooled; want >= c.bucket.Limit/20 {
			worst = int64(min(quantity.Units(worst), got*allocator.PPM/want))
		}
	}
	us := c.regions["us"]
	c.run(step.Add(window) + Interval)
	if share, before := us.machine.views["b"].state.Share,
		us.machine.views["b"].state.Used; share*100 < min(855, before)*95 {
		t.Errorf("seed %d: us holds %d, %d count", seed, share, before)
	}
	if v := c.judge.Verdict(); !v.Holds() {
		t.Errorf("seed %d: %s", seed, v)
	}
	return worst
}
