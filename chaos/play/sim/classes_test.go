//go:build !race

package sim

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestSeedsWithClassesHold: no seed breaks an invariant whose limits have classes, beside the other
// draws.
func TestSeedsWithClassesHold(t *testing.T) {
	for _, c := range []Config{{Classes: true}, {Classes: true, Wider: true, Spanning: true}, {Classes: true, Owing: true, Varied: true}} {
		tally := holds(t, Hunt{Config: c, Seeds: suite.Short[uint64](30, 100)})
		if tally.Counts.Classed == 0 {
			t.Errorf("%+v: no request was held to its class", c)
		}
	}
}

// TestClassesAreDrawn: the draw gives classes to every kind of limit that may have them.
func TestClassesAreDrawn(t *testing.T) {
	drawn := map[algorithms.Kind]int{}
	for seed := range uint64(100) {
		d, err := Draw(seed, Config{For: 30_000_000, Classes: true}).document(1)
		suite.Must(t, err)
		for _, l := range d.Limits {
			if l.Classes != nil {
				drawn[l.Algorithm]++
			}
		}
	}
	for _, k := range algorithms.Kinds {
		if (drawn[k] > 0) == (k == algorithms.LeakyBucket) {
			t.Errorf("%d limits of %s have classes", drawn[k], k)
		}
	}
}
