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
