//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// TestTraffic: a fixed window costs no messages while no region wants more than its part, even if
// all regions want nearly that. A window that is traded costs each node few messages, with asks,
// answers and hints counted together.
func TestTraffic(t *testing.T) {
	for name, x := range map[string]struct {
		window int64 // seconds
		rates  []quantity.Units
		most   int64 // messages a second, times ten
	}{
		"idle":                        {1, []quantity.Units{0, 0, 0}, 0},
		"one region, within its part": {1, []quantity.Units{300, 0, 0}, 0},
		"one region, more than it":    {1, []quantity.Units{900, 0, 0}, 60},
		"all within their parts":      {1, []quantity.Units{200, 200, 100}, 0},
		"some within, 1 s":            {1, []quantity.Units{600, 200, 100}, 80},
		"some within, 10 s":           {10, []quantity.Units{600, 200, 100}, 20},
		"one region, more, 10 s":      {10, []quantity.Units{900, 0, 0}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClusterOf(t, 1, algorithms.FixedWindow, x.window*allocator.Second, 400, 400,
				200)
			c.demandFor(Options{}, x.window, x.rates...)
			c.run(c.now + 5*allocator.Second)
			messages := func() (sum int64) {
				s := c.stats()
				return 2*s.Asks + 2*s.HintsPublished
			}
			before := messages()
			c.run(c.now + 20*allocator.Second)
			got := (messages() - before) * 10 / 20
			t.Logf("%d.%d messages a second", got/10, got%10)
			if got > x.most {
				t.Errorf("%d.%d messages a second, want at most %d.%d", got/10, got%10, x.most/10,
					x.most%10)
			}
		})
	}
}
