//go:build !race

package exchange

import (
	"math/rand/v2"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestBenefitOfTheTail: the last units of a long window are scattered: each of four regions has one
// or two, and expects less than half a request more. One region needs them, and is denied them if
// each keeps its own.
func TestBenefitOfTheTail(t *testing.T) {
	const window = 20 // seconds
	var got [2]denials
	for i, o := range []Options{{}, {WithoutTail: true}} {
		// units of each of the others in a window
		for _, calm := range []quantity.Units{5, 15, 25} {
			for seed := range uint64(8) {
				c := newClusterOf(t, seed, algorithms.FixedWindow, window*allocator.Second, 40, 40,
					40, 40, 40)
				c.bucket.Lending = allocator.PPM
				c.pooled = new(quantity.Units)
				c.run((c.now/(window*allocator.Second) + 1) * window * allocator.Second)
				c.demandFor(o, window, 400, calm, calm, calm, calm)
				c.run(c.now + (window-1)*allocator.Second)
				c.demandFor(o, window, 400, 0, 0, 0, 0)
				c.run(c.now + allocator.Second - 1)
				got[i].add(c)
			}
		}
	}
	on, off := got[0].falsely(), got[1].falsely()
	t.Logf("false denials of %d units: %d with, %d without", got[0].pooled, on, off)
	if off < 2*on || off == 0 || on*100 > got[0].pooled {
		t.Errorf("false denials of %d units: %d with, %d without", got[0].pooled, on, off)
	}
}

// TestBenefitOfTheLongTail: the limit of a long window is used up. One hot region uses nearly all
// that is left, while the others go on at half of their parts. What the others turn out not to need
// comes free unit by unit until the end. Gossip is a second late, as it is for one bucket of many.
func TestBenefitOfTheLongTail(t *testing.T) {
	suite.Long(t)
	const part = 2000
	benefit(t, 8, 1, func(seed uint64, draw *rand.Rand, off bool) *cluster {
		c := newClusterOf(t, seed, algorithms.FixedWindow, 60*allocator.Second, part, part, part,
			part, part)
		c.net.hintDelay = allocator.Second
		c.run(quantity.NodeTime((int64(c.now)/c.bucket.Window + 1) * c.bucket.Window))
		c.quiet(Options{WithoutTail: off}, false)
		for range 3 {
			begin := c.now
			hot := draw.IntN(5)
			for n, name := range c.names {
				units := part / 2
				if n == hot {
					units = part * 33 / 10
				}
				for range units {
					c.after(draw.Int64N(c.bucket.Window), func() { c.regions[name].decide(1) })
				}
			}
			c.run(begin.Add(c.bucket.Window))
		}
		c.run(quantity.NodeTime((int64(c.now)/c.bucket.Window+1)*c.bucket.Window - 1))
		return c
	})
}
