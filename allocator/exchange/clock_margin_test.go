//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// TestClocksWithinTheGuard: the sliding kinds are exact in real time as long as clocks are no
// further apart than the clock margin. The log is judged by one real clock. The counter counts by
// cells, and each region's cells follow its own clock. So for the counter the sum of the regions'
// estimates at one moment, each by its own clock, must not exceed the limit.
func TestClocksWithinTheGuard(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			const seeds = 27
			var sum tally
			for seed := range seeds * times() {
				c := hostileCluster(t, seed, kind, 1)
				c.setApart(c.rand.Int64N(algorithms.ClockMargin+1),
					c.rand.Int64N(algorithms.ClockMargin+1),
					c.rand.Int64N(algorithms.ClockMargin+1))
				c.hostility(false)
				c.survive(seed, 15*allocator.Second)
				sum.add(c)
			}
			sum.mustBeHard(t, kind, quantity.Units(seeds*times()))
		})
	}
}

// setApart puts the clocks of us, eu and ap ahead of the real one, for good.
func (c *cluster) setApart(ahead ...int64) {
	c.apart = true
	for i, name := range c.names {
		c.regions[name].offset = ahead[i]
	}
	if c.bucket.Kind == algorithms.SlidingWindowCounter {
		c.judge = nil // it counts by the cells of one clock
	}
}
