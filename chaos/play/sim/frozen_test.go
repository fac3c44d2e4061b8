//go:build !race

package sim

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

// TestAMachineThatStandsStill: a node holds units of a window, and its machine stands still until the next
// one, of which both regions use all. Where no clock shows it, what the node held comes on top: at least
// a fourth of what is printed, and no more. Where the wall clock shows it, or the node goes on within the window,
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
			if w.broken != nil || w.counts.Spent == 0 || most > printed || most > allowed || c.late && 4*most < printed || !c.late && most > 0 {
				t.Errorf("%v; %d admitted above the limit, %d printed, %d allowed; %d requests from what it held", w.broken, most, printed, allowed, w.counts.Spent)
			}
			b.allowances = nil
			if w.checkJudge(b); (w.broken != nil) != c.late {
				t.Errorf("without what is printed for it: %v", w.broken)
			}
		})
	}
}

// TestWhatIsHeldDoesNotAddUp: requests for more than a node holds go to its store, and each may have it hold more.
// It holds no more than a fourth of what was free, and no more comes on top when its machine stands still.
func TestWhatIsHeldDoesNotAddUp(t *testing.T) {
	for name, c := range map[string]struct {
		costs []quantity.Units
		least quantity.Units
	}{"once": {[]quantity.Units{1}, 370}, "again and again": {[]quantity.Units{1, 500, 750}, 250}} {
		t.Run(name, func(t *testing.T) {
			w := heldTooLong(t, c.costs)
			if most, _, _ := w.above(""); w.broken != nil || most < c.least || most > 500 {
				t.Errorf("%v; %d admitted above the limit, want %d to 500", w.broken, most, c.least)
			}
		})
	}
}

// heldTooLong has a node asked for units of a window of which 2000 are free, and stand still until the next one,
// in which it spends what it holds.
func heldTooLong(t *testing.T, costs []quantity.Units) *world {
	t.Helper()
	w, err := newWorld(pair(1, "algorithm: fixed_window, limit: 4000, window: 10s, consistency: prefetch", nil,
		at(10.05, Freeze, 12, by(8)), at(22.5, Steady, 7, of(0), each(800_000)),
		at(22.5, Steady, 7, of(1), each(800_000))), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	w.counts.Deeds = map[Deed]int64{}
	ask := func(at int64, cost quantity.Units) {
		w.at(at, func() {
			q := w.question("api", 0)
			q.Cost = cost
			w.ask(w.regions[0].nodes[0], &request{q: q})
		})
	}
	for i := range int64(60) { // so that the node holds much at once
		ask(9_900_000+i*1500, 20)
	}
	for i, cost := range costs {
		ask(10_010_000+int64(i)*1000, cost)
	}
	for i := range int64(80) {
		ask(22_060_000+i*1000, 10)
	}
	if w.run(w.plan.End); w.broken == nil {
		w.finish()
	}
	return w
}
