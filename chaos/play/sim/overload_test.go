//go:build !race

package sim

import (
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestBusySeedsHold: no seed breaks an invariant whose stores take time and are asked for more than
// they can decide, and the draw has nodes refuse what they have no time for.
func TestBusySeedsHold(t *testing.T) {
	tally := holds(t, Hunt{Config: Config{For: 30_000_000, Busy: true}, Seeds: suite.Short[uint64](10, 40)})
	if c := tally.Counts; c.Refused == 0 || c.Refused > c.Requests/2 {
		t.Errorf("of %d requests %d are refused for want of time: the draw shows nothing", c.Requests, c.Refused)
	}
	holds(t, Hunt{Config: Config{For: 30_000_000, Busy: true, Spanning: true}, Seeds: suite.Short[uint64](5, 40)})
}
