package exchange

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

func TestRoot(t *testing.T) {
	for n, want := range map[int64]int64{-1: 0, 0: 0, 1: 1, 3: 1, 4: 2, 8: 2, 9: 3, 1 << 62: 1 << 31, 1<<63 - 1: 3_037_000_499} {
		if got := root(n); got != want {
			t.Errorf("root of %d: %d, want %d", n, got, want)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.Int64Range(0, 1<<60).Draw(r, "n")
		if got := root(n); got*got > n || (got+1)*(got+1) <= n {
			r.Fatalf("root of %d: %d", n, got)
		}
	})
}

// TestFewest: those with most to offer come first, and none that is not needed; all if they have too little.
func TestFewest(t *testing.T) {
	offers := []allocator.Offer{{Peer: 0, Spare: 10}, {Peer: 1, Spare: 40}, {Peer: 2, Back: 5, Spare: 25}}
	for units, want := range map[int64][]int{1: {1}, 27: {1}, 28: {1, 2}, 47: {1, 2}, 48: {1, 2, 0}, 1000: {1, 2, 0}} {
		var got []int
		for _, o := range fewest(slices.Clone(offers), units) {
			got = append(got, o.Peer)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d units: of %v, want %v", units, got, want)
		}
	}
}

// TestTraffic: a fixed window costs nothing where no region wants more than its part, also if all do that nearly; one that
// is traded costs few messages, asks, answers and hints to each node all together.
func TestTraffic(t *testing.T) {
	for name, x := range map[string]struct {
		window int64 // seconds
		rates  []int64
		most   int64 // messages a second, times ten
	}{
		"idle":                        {1, []int64{0, 0, 0}, 0},
		"one region, within its part": {1, []int64{300, 0, 0}, 0},
		"one region, more than it":    {1, []int64{900, 0, 0}, 60},
		"all within their parts":      {1, []int64{200, 200, 100}, 0},
		"some within, 1 s":            {1, []int64{600, 200, 100}, 80},
		"some within, 10 s":           {10, []int64{600, 200, 100}, 20},
		"one region, more, 10 s":      {10, []int64{900, 0, 0}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClusterOf(t, 1, algorithms.FixedWindow, x.window*allocator.Second, 400, 400, 200)
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
				t.Errorf("%d.%d messages a second, want at most %d.%d", got/10, got%10, x.most/10, x.most%10)
			}
		})
	}
}
