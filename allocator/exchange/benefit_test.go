//go:build !race

package exchange

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// denials is what a pooled limiter admitted in some runs, and what we did.
type denials struct{ pooled, ours quantity.Units }

func (d *denials) add(c *cluster) {
	d.pooled += *c.pooled
	for _, r := range c.regions {
		d.ours += r.admitted
	}
}

// falsely returns the false denials.
func (d denials) falsely() quantity.Units { return d.pooled - d.ours }

// benefit plays the seeds with a feature and without it, with the same requests at the same times.
// It fails if the false denials with the feature are more than the given per mille of what the
// pooled limiter admits, or if they are not at least twice as many without it.
func benefit(t *testing.T, seeds uint64, most int64, play func(seed uint64, draw *rand.Rand,
	off bool) *cluster) {
	t.Helper()
	var with, without denials
	for seed := range seeds {
		with.add(play(seed, rand.New(rand.NewPCG(seed, 1)), false))
		without.add(play(seed, rand.New(rand.NewPCG(seed, 1)), true))
	}
	t.Logf("false denials of %d units: %d with, %d without", with.pooled, with.falsely(),
		without.falsely())
	if with.falsely()*1000 > with.pooled*quantity.Units(most) {
		t.Errorf("%d false denials of %d units: more than %d per mille", with.falsely(),
			with.pooled, most)
	}
	if without.falsely() < 2*max(with.falsely(), 1) {
		t.Errorf("%d false denials of %d units with, %d without: it hardly matters", with.falsely(),
			with.pooled, without.falsely())
	}
}

// spread offers units to a region one by one, evenly over so many milliseconds.
func (c *cluster) spread(r *testRegion, units quantity.Units, over int64) {
	for n := range units {
		c.after(int64(n*quantity.Units(over)*1000/units), func() { r.decide(1) })
	}
}

// quiet begins a cluster without load, and lets the regions hear each other.
func (c *cluster) quiet(o Options, borrows bool) {
	c.pooled = new(quantity.Units)
	for _, name := range c.names {
		r := c.regions[name]
		r.options, r.borrows = o, borrows
		r.start()
	}
	c.run(c.now + allocator.Second)
}

// TestBenefitOfBurstRights: a burst is larger than a region's own part of the bucket and smaller
// than the whole bucket. It is spread over a third of a second to a whole one, while the other
// regions are idle. Without burst rights a region can borrow only refill.
func TestBenefitOfBurstRights(t *testing.T) {
	benefit(t, 16, 70, func(seed uint64, draw *rand.Rand, off bool) *cluster {
		c := newClusterOf(t, seed, algorithms.TokenBucket, 10*allocator.Second, 40, 40, 20)
		c.quiet(Options{WithoutBurst: off}, false)
		for range 10 {
			c.spread(c.regions[c.names[draw.IntN(3)]], quantity.Units(45+draw.Int64N(50)),
				300+draw.Int64N(500))
			c.run((c.now + 15*allocator.Second).Add(draw.Int64N(allocator.Second)))
		}
		return c
	})
}

// TestBenefitOfBorrowing: a small limit gets rare bunches of requests, each within a moment, at any
// region. Without on_exhausted: borrow a region fetches what it lacks for later requests, and none
// come.
func TestBenefitOfBorrowing(t *testing.T) {
	for _, k := range []struct {
		kind algorithms.Kind
		most int64
	}{
		{algorithms.FixedWindow, 50}, {algorithms.SlidingWindowCounter, 180},
	} {
		for _, limit := range []quantity.Units{20, 50} {
			t.Run(fmt.Sprint(k.kind, " ", limit), func(t *testing.T) {
				benefit(t, 8, k.most, func(seed uint64, draw *rand.Rand, off bool) *cluster {
					c := newClusterOf(t, seed, k.kind, 10*allocator.Second, limit*2/5, limit*2/5,
						limit/5)
					c.quiet(Options{}, !off)
					for range 20 {
						c.spread(c.regions[c.names[draw.IntN(3)]],
							limit/4+quantity.Units(draw.Int64N(int64(limit/2))), 50)
						c.run((c.now + 3*allocator.Second).Add(draw.Int64N(10 * allocator.Second)))
					}
					return c
				})
			})
		}
	}
}

// TestBenefitOfHomeMode: a limit of 3 over five regions gets that many requests on average, one at
// a time, anywhere. With home mode and without, regions borrow within the request. Without it each
// single unit belongs to another region for every key, and is never lent: a lending limit of 95 %
// of one unit is no unit.
func TestBenefitOfHomeMode(t *testing.T) {
	const limit = 3
	for _, seconds := range []int64{10, 60} {
		benefit(t, 5, 30, func(key uint64, draw *rand.Rand, off bool) *cluster {
			split := allocator.SplitOf(limit, 0, []quantity.Units{1, 1, 1, 1, 1}, key, !off)
			window := seconds * allocator.Second
			c := newClusterOf(t, key, algorithms.FixedWindow, window, split.Units...)
			if !off {
				c.bucket.Home, c.bucket.Lending = true, allocator.PPM
			}
			c.quiet(Options{}, true)
			for end := c.now.Add(12 * window); c.now < end; {
				c.regions[c.names[draw.IntN(5)]].decide(1)
				c.run(c.now.Add(draw.Int64N(2 * window / limit)))
			}
			return c
		})
	}
}
