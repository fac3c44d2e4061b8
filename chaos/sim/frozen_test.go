//go:build !race

package sim

import "testing"

// TestAMachineThatStandsStill: a node holds units of a window, and its machine stands still until the next
// one, of which both regions use all. Where no clock shows it, what the node held comes on top: at least
// two fifths of what is printed, and no more. Where the wall clock shows it, or the node goes on within the window,
// nothing does.
func TestAMachineThatStandsStill(t *testing.T) {
	const prefetched = "limit: 4000, window: 10s, consistency: prefetch"
	still := func(do Deed, length float64) []Act {
		return []Act{at(8.92, do, length, by(8)), at(8.8, Steady, 0.6, of(0), each(8_000_000)),
			at(8.92+length, Steady, 0.3, of(0), each(8_000_000)),
			at(20.5, Steady, 9, of(0), each(800_000)), at(20.5, Steady, 9, of(1), each(800_000))}
	}
	for name, c := range map[string]struct {
		kind string
		acts []Act
		late bool
	}{
		"no clock shows it":               {"fixed_window", still(Freeze, 11.5), true},
		"no clock shows it, of a counter": {"sliding_window_counter", still(Freeze, 11.5), true},
		"the wall clock shows it":         {"fixed_window", still(Pause, 11.500_001), false},
		"within the window":               {"fixed_window", still(Freeze, 0.1), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := played(t, pair(1, "algorithm: "+c.kind+", "+prefetched, nil, c.acts...))
			b := w.limits[0].buckets[0]
			most, allowed, _ := w.above("")
			printed := b.termChunk(0, 1)
			if w.broken != nil || w.counts.Spent == 0 || most > printed || most > allowed || c.late && 5*most < 2*printed || !c.late && most > 0 {
				t.Errorf("%v; %d admitted above the limit, %d printed, %d allowed; %d requests from what it held", w.broken, most, printed, allowed, w.counts.Spent)
			}
			b.allowances = nil
			if w.checkJudge(b); (w.broken != nil) != c.late {
				t.Errorf("without what is printed for it: %v", w.broken)
			}
		})
	}
}
