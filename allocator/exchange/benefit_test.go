package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

// denials is what a pooled limiter admitted in some runs, and what we admitted.
type denials struct{ pooled, ours int64 }

// false denials
func (d denials) falsely() int64 { return d.pooled - d.ours }

func (d *denials) add(c *cluster) {
	d.pooled += *c.pooled
	for _, r := range c.regions {
		d.ours += r.admitted
	}
}

// TestBurstRights: bursts of a token bucket, larger than a region's own part and smaller than the whole, over half a second, while
// the other regions are idle.
func TestBenefitOfBurstRights(t *testing.T) {
	for _, spread := range []int64{0, 100, 200, 300, 500, 800} {
		for _, size := range []int64{40, 60, 80, 95} {
			var got [2]denials
			for i, o := range []Options{{}, {WithoutBurst: true}} {
				for seed := range uint64(8) {
					c := newClusterOf(t, seed, algorithms.TokenBucket, 10*allocator.Second, 40, 40, 20)
					c.pooled = new(int64)
					c.demandFor(o, 1, 0, 0, 0)
					c.run(c.now + allocator.Second)
					for range 10 {
						r := c.regions[c.names[c.rand.IntN(3)]]
						c.spread(r, size, spread*1000)
						c.run(c.now + 15*allocator.Second)
					}
					got[i].add(c)
				}
			}
			t.Logf("spread %d ms size %d: pooled %d on %d off %d", spread, size, got[0].pooled, got[0].falsely(), got[1].falsely())
		}
	}
}

// spread offers units to a region one by one, evenly over a time.
func (c *cluster) spread(r *testRegion, units, over int64) {
	for n := range units {
		c.after(n*over/units, func() { r.decide(1) })
	}
}

func TestBenefitOfBorrowing(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter, algorithms.SlidingWindowLog, algorithms.TokenBucket} {
		for _, spread := range []int64{0, 50, 200} {
			for _, L := range []int64{20, 50, 100} {
				var got [2]denials
				for i := range got {
					for seed := range uint64(8) {
						c := newClusterOf(t, seed, kind, 10*allocator.Second, L*2/5, L*2/5, L/5)
						c.pooled = new(int64)
						c.demandFor(Options{}, 1, 0, 0, 0)
						for _, r := range c.regions {
							r.borrows = i == 0
						}
						c.run(c.now + allocator.Second)
						for range 20 {
							r := c.regions[c.names[c.rand.IntN(3)]]
							c.spread(r, L/4+c.rand.Int64N(L/2), spread*1000)
							c.run(c.now + 3*allocator.Second + c.rand.Int64N(10*allocator.Second))
						}
						got[i].add(c)
					}
				}
				t.Logf("%s L %d spread %d ms: pooled %d on %d off %d", kind, L, spread, got[0].pooled, got[0].falsely(), got[1].falsely())
			}
		}
	}
}
