//go:build !race

package sim

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

// played runs a plan to its end, with what judges it, and returns its world.
func played(t *testing.T, p *Plan) *world {
	t.Helper()
	w, err := newWorld(p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	w.counts.Deeds = map[Deed]int64{}
	if w.run(p.End); w.broken == nil {
		w.finish()
	}
	return w
}

// above returns by how much a world's first bucket came above its ceiling, what was allowed there, and
// what of that was allowed for other things than a cause.
func (w *world) above(cause string) (most, allowed, otherwise quantity.Units) {
	b := w.limits[0].buckets[0]
	for cell, level := range b.judge.Levels(w.plan.Keys[0]) {
		over := quantity.Units(level) - b.ceiling(quantity.Cell(cell))
		if over < most {
			continue
		}
		most, otherwise = over, 0
		allowed, _ = b.allowedIn(quantity.Cell(cell))
		for _, a := range b.allowances {
			if a.cause != cause && a.from < b.cells().Opens(quantity.Cell(cell+1)) && b.cells().Opens(quantity.Cell(cell)) <= a.to {
				otherwise += a.units
			}
		}
	}
	return most, allowed, otherwise
}

// TestTheOperatorsWord: a node used all that its region had, and is gone for good, and so is what its mate
// could know of it. Without an operator's word the region waits, and nothing is exceeded. After the word
// nobody is waited for, also by a node that starts anew. What was used is had once more: more than all
// else allows, and no more than what is printed for the word.
func TestTheOperatorsWord(t *testing.T) {
	gone := func(more ...Act) []Act {
		return append(more, at(0, Stick, 50, on(1)), at(2, MatesCut, 12, on(1)), at(13, NodeGone, 0, on(1)),
			at(13.000_001, Flush, 0))
	}
	spent, word := [][2]int64{{2, 12}, {20, 43}}, at(25, Recover, 0)
	for name, c := range map[string]struct {
		plan  *Plan
		least quantity.Units
	}{
		"no word":                    {pair(2, hourly, spent, gone()...), 0},
		"a word":                     {pair(2, hourly, spent, gone(word)...), 490},
		"a word, of a counter":       {pair(2, counted, spent, gone(word)...), 490},
		"a word, and the node ends":  {pair(2, hourly, [][2]int64{{2, 10}, {30, 43}}, gone(word, at(26, Crash, 1))...), 490},
		"a word too soon":            {pair(2, hourly, spent, gone(at(12.5, Recover, 0))...), 0},
		"a word before it is needed": {pair(2, hourly, [][2]int64{{2, 10}, {30, 43}}, gone(word)...), 490},
		"a word, of what others lent": {lending(pair(2, hourly, nil, gone(word, at(2, Steady, 10, of(0)),
			at(20, Steady, 23, of(0)))...)), 900},
	} {
		t.Run(name, func(t *testing.T) {
			w := played(t, c.plan)
			most, allowed, otherwise := w.above("the operator's word in r0")
			if w.broken != nil || most < c.least || most > allowed || c.least > 0 && most <= otherwise {
				t.Errorf("%v; %d admitted above the limit of at least %d, %d of %d were allowed for other things", w.broken, most, c.least, otherwise, allowed)
			}
			spoken := c.least > 0
			if live := w.limits[0].buckets[0].live[0]; live != spoken {
				t.Errorf("decided in the end: %v, with a word: %v", live, spoken)
			}
		})
	}
}

// TestANodeIsAdded: a node is added in the middle of a window, of which the others used something, and
// then the store loses its data. Whatever the nodes' files say, all is decided again in time, and nothing
// is exceeded. The others know that one which is added as the store has just lost its data, or after it lost them
// before in this window, was not there.
func TestANodeIsAdded(t *testing.T) {
	waits := map[string]bool{"and a mate is lost": true, "while the store answers nobody": true, "after the store was slow": true}
	slow := func(a *Act) { a.Amount = 60_000 }
	rolled := func(a *Act) { a.Back, a.Amount = true, 500_000 }
	for name, acts := range map[string][]Act{ // of which those in waits need not be decided
		"files say so":                   {at(10, NodeAdded, 0, both), at(15, Flush, 0)},
		"all are restarted":              {at(10, NodeAdded, 0, rolled), at(15, Flush, 0)},
		"no file says so":                {at(10, NodeAdded, 0), at(15, Flush, 0)},
		"just before the loss":           {at(14.99, NodeAdded, 0, both), at(15, Flush, 0), at(16, Crash, 1)},
		"just after the loss":            {at(15.01, NodeAdded, 0), at(15, Flush, 0)},
		"and the store was lost before":  {at(5, Flush, 0), at(10, NodeAdded, 0, both), at(15, Flush, 0)},
		"and a mate is lost":             {at(10, NodeAdded, 0, both), at(15, ZoneLost, 0)},
		"after the store was slow":       {at(5, StoreBusy, 6, slow), at(9, Flush, 0), at(11.01, NodeAdded, 0)},
		"while the store answers nobody": {at(6, StoreDown, 9), at(10, NodeAdded, 0), at(14.9, Flush, 0)},
		"all it did is not told":         {at(10, NodeAdded, 0), at(10.5, MatesCut, 5, on(1)), at(12, Stick, 3, on(1)), at(15, Flush, 0), at(14.9, Crash, 8, on(1))},
	} {
		t.Run(name, func(t *testing.T) {
			w := played(t, pair(1, hourly, [][2]int64{{2, 4}, {12, 14}, {20, 43}}, acts...))
			most, allowed, _ := w.above("")
			if live := w.limits[0].buckets[0].live[0]; w.broken != nil || len(w.regions[0].nodes) != 2 || most > allowed || live == waits[name] {
				t.Errorf("%v; %d nodes; %d admitted above the limit; decided in the end: %v", w.broken, len(w.regions[0].nodes), most, live)
			}
		})
	}
}

// TestANodeIsAddedWhileTheStoreStartsAnew: the machine of a node and the store is started anew, and the
// store loses its data. Meanwhile a node is added. The others know that it was not there before, though
// the store's time has gone on by more than they heard.
func TestANodeIsAddedWhileTheStoreStartsAnew(t *testing.T) {
	for _, length := range []float64{0.3, 1, 1.9} {
		for node := range 2 {
			w := played(t, pair(2, hourly, [][2]int64{{2, 4}, {12, 14}, {20, 43}},
				at(15, Reboot, length, on(node)), at(15+length/2, NodeAdded, 0)))
			if most, allowed, _ := w.above(""); w.broken != nil || len(w.regions[0].nodes) != 3 || most > allowed || !w.limits[0].buckets[0].live[0] {
				t.Errorf("for %v s, with node %d: %v; %d admitted above the limit", length, node, w.broken, most)
			}
		}
	}
}

// TestANodeIsAddedAndLost: a node is added, uses what its region has, tells its mates nothing, and is lost
// with its store soon after. The others know that it was there, and wait for it.
func TestANodeIsAddedAndLost(t *testing.T) {
	for _, length := range []float64{1.5, 2.5, 3.5} {
		w := played(t, pair(2, hourly, [][2]int64{{12, 15}, {20, 43}}, at(15-length, NodeAdded, 0, both), at(15-length, MatesCut, length+2, on(2)),
			at(15-length, Stick, length, on(2)), at(15, ZoneLost, 0, on(2))))
		if most, _, _ := w.above(""); w.broken != nil || len(w.regions[0].nodes) != 3 || most > 0 || w.limits[0].buckets[0].live[0] {
			t.Errorf("for %v s: %v; %d admitted above the limit; decided in the end: %v", length, w.broken, most, w.limits[0].buckets[0].live[0])
		}
	}
}

// TestTheOneBeforeIsKnown: the only node of a region is back under another name, without its journal.
// Its store tells it of the one before. Then it ends, at once or later, and the store loses its data
// while nobody is there. What the one before lent is not had again.
func TestTheOneBeforeIsKnown(t *testing.T) {
	for name, ends := range map[string]float64{"at once": 12.95, "a little later": 13, "later": 16} {
		t.Run(name, func(t *testing.T) {
			w := played(t, lending(pair(1, hourly, nil, at(2, Steady, 6, of(1)),
				at(12, JournalLost, 1.5e-6), at(ends, Crash, 8), at(ends+0.5, Flush, 0),
				at(ends+8, Cut, 10, both), at(ends+9, Steady, 10, of(0)), at(ends+9, Steady, 10, of(1)))))
			if most, _, _ := w.above(""); w.broken != nil || most > 0 || w.regions[0].nodes[0].name != "r0/n1.1" {
				t.Errorf("%v; %d admitted above the limit by %s", w.broken, most, w.regions[0].nodes[0].name)
			}
		})
	}
}

// TestAZoneIsLost: a store loses its data together with nodes that have used all there was. They are back at
// once, under their names, and know nothing. No more is had once more than is printed for copies that others
// have, whoever is asked, and nobody waits for what copies tell.
func TestAZoneIsLost(t *testing.T) {
	all := func(a *Act) { a.Amount = maxNodes }
	for name, c := range map[string]struct {
		nodes int
		acts  []Act
		waits bool
	}{
		"one of two":                      {2, []Act{at(15, ZoneLost, 0, on(1))}, false},
		"one of two, and was cut off":     {2, []Act{at(3, MatesCut, 14, on(1)), at(15, ZoneLost, 0, on(1))}, true},
		"all of three but one":            {3, []Act{at(15, ZoneLost, 0, on(1), all)}, false},
		"all of three but one, unluckily": {3, []Act{at(15, ZoneLost, 0, on(0), all)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			acts := append(c.acts, at(0, Stick, 15, on(1)), at(15, Stick, 29, on(0)))
			w := played(t, pair(c.nodes, hourly, [][2]int64{{2, 12}, {17, 43}}, acts...))
			most, allowed, _ := w.above("")
			live := w.limits[0].buckets[0].live[0]
			if w.broken != nil || most > allowed || allowed >= 300 || w.counts.Deeds[ZoneLost] != 1 || live == c.waits {
				t.Errorf("%v; %d admitted above the limit, %d are allowed; decided in the end: %v", w.broken, most, allowed, live)
			}
		})
	}
}

// TestALostZoneIsKnownAfterRestarts: a store loses its data together with a node, whose mates have no
// copies of what it saw, or have them no more: all nodes are then started anew, one after the other, as
// for a new release, before anybody asks for the bucket again. They still know that the node was there, and
// wait for it.
func TestALostZoneIsKnownAfterRestarts(t *testing.T) {
	for name, c := range map[string]struct {
		ends Deed
		cut  bool
	}{
		"ended in order":              {Leave, false},
		"ended in order, and was cut": {Leave, true},
		"killed":                      {Crash, false},
		"killed, and was cut":         {Crash, true},
	} {
		t.Run(name, func(t *testing.T) {
			acts := []Act{at(0, Stick, 15, on(1)), at(15, ZoneLost, 0, on(1)), at(22, c.ends, 1, on(0)), at(27, c.ends, 1, on(1))}
			if c.cut {
				acts = append(acts, at(3, MatesCut, 14, on(1)))
			}
			w := played(t, pair(2, hourly, [][2]int64{{2, 12}, {32, 43}}, acts...))
			most, allowed, _ := w.above("")
			live := w.limits[0].buckets[0].live[0]
			if w.broken != nil || most > allowed || allowed >= 300 || w.counts.Deeds[c.ends] != 2 || live {
				t.Errorf("%v; %d admitted above the limit, %d are allowed; decided in the end: %v", w.broken, most, allowed, live)
			}
		})
	}
}
