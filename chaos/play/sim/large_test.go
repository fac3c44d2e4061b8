//go:build !race

package sim

import (
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestSeedsWithLargeCostsHold: no seed breaks an invariant in which some requests cost up to the
// whole limit, and some of them are admitted.
func TestSeedsWithLargeCostsHold(t *testing.T) {
	for _, c := range []Config{{Large: true}, {Large: true, Wider: true, Classes: true}, {Large: true, Varied: true, Spanning: true}} {
		tally := holds(t, Hunt{Config: c, Seeds: suite.Short[uint64](20, 100)})
		if tally.Counts.Large == 0 || tally.Counts.LargeAdmitted == 0 {
			t.Errorf("%+v: %d large costs, of which %d were admitted", c, tally.Counts.Large, tally.Counts.LargeAdmitted)
		}
	}
}
