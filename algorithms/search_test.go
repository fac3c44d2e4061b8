//go:build !race

package algorithms

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// A search goes through every state that two regions (F = 2 and 1) can reach by admitting, lending,
// giving back, promising, hearing and ticking, where any row ever announced may be heard at any
// time, any number of times, or never. Random runs miss what it finds.

// searchStates bounds a search. Every whole space is smaller.
const searchStates = 1_000_000

// searched are the spaces. A search that finds fewer states than the number given has missed much
// of its space.
var searched = map[string]struct {
	fewest int
	space
}{
	"fixed window, clocks a cell apart": {200_000, space{kind: FixedWindow, window: 1, cell: 1,
		cells: 3, maxLent: 2, maxBack: 1, drift: 1}},

	"fixed window, charged always": {200_000, space{kind: FixedWindow, window: 1, cell: 1,
		cells: 2, maxLent: 2, maxBack: 1, drift: 1, always: true}},
	"counter, charged always": {100_000, space{kind: SlidingWindowCounter, window: 2, cell: 2,
		cells: 3, maxLent: 2, maxBack: 1, always: true}},
	"log, charged always": {100_000, space{kind: SlidingWindowLog, window: 2, cell: 2,
		cells: 3, maxLent: 2, maxBack: 1, always: true}},

	"counter": {100_000, space{long: true, kind: SlidingWindowCounter, window: 2, cell: 2,
		cells: 3, maxLent: 2, maxBack: 2}},
	"counter of three ticks": {100_000, space{long: true, kind: SlidingWindowCounter, window: 3, cell: 3,
		cells: 3, maxLent: 2, maxBack: 1}},
	"counter, clocks a tick apart": {300_000, space{kind: SlidingWindowCounter, window: 2, cell: 2,
		cells: 3, maxLent: 2, maxBack: 1, drift: 1, guard: 1}},
	"counter of three ticks, clocks a tick apart": {400_000, space{kind: SlidingWindowCounter,
		window: 3, cell: 3,
		cells: 3, maxLent: 2, maxBack: 1, drift: 1, guard: 1}},

	"log": {100_000, space{kind: SlidingWindowLog, window: 2, cell: 2,
		cells: 3, maxLent: 2, maxBack: 2}},
	"log, two cells in a window": {300_000, space{long: true, kind: SlidingWindowLog, window: 2, cell: 1,
		cells: 5, maxLent: 2, maxBack: 1}},
	"log, cells that do not divide the window": {100_000, space{kind: SlidingWindowLog, window: 3,
		cell:  2,
		cells: 3, maxLent: 2, maxBack: 1}},
	// One tick apart, the log is exact without a guard: a unit admitted in the last tick of a cell
	// leaves the window a tick before the cell's end does.
	"log, a two ticks ahead": {200_000, space{kind: SlidingWindowLog, window: 3, cell: 3,
		cells: 3, maxLent: 2, maxBack: 1, ahead: [2]quantity.StoreTime{2, 0}, guard: 2}},
	"log, b two ticks ahead": {200_000, space{long: true, kind: SlidingWindowLog, window: 3, cell: 3,
		cells: 3, maxLent: 2, maxBack: 1, ahead: [2]quantity.StoreTime{0, 2}, guard: 2}},
	"log, two cells in a window, a a tick ahead": {100_000, space{kind: SlidingWindowLog, window: 2,
		cell:  1,
		cells: 4, maxLent: 2, maxBack: 1, ahead: [2]quantity.StoreTime{1, 0}, guard: 1}},
	"log, two cells in a window, b a tick ahead": {75_000, space{kind: SlidingWindowLog, window: 2,
		cell:  1,
		cells: 4, maxLent: 2, maxBack: 1, ahead: [2]quantity.StoreTime{0, 1}, guard: 1}},
}

func TestEveryReachableStateKeepsTheCeiling(t *testing.T) {
	for name, s := range searched {
		t.Run(name, func(t *testing.T) {
			if s.long {
				suite.Long(t)
			}
			t.Parallel()
			f := explore(&s.space, searchStates)
			switch {
			case f.broken != "":
				t.Fatalf("after %d states %s; the way there: %s", f.states, f.broken, f.way)
			case f.states < s.fewest || f.states >= searchStates:
				t.Fatalf("%d states: the search has not seen the whole of a space worth searching",
					f.states)
			case f.most != [2]quantity.StoreTime{s.full(), s.full()}:
				t.Fatalf("of the regions' admissions never more than %d counted, of %d: neither could borrow all there is", f.most, s.full())
			}
			t.Logf("%d states", f.states)
		})
	}
}

// without returns a space with rules left out, the clock guard always.
func without(name string, m mutant) space {
	s := searched[name].space
	s.mutant = m
	s.guard = 0
	return s
}

// TestSearchFindsBrokenRules shows that the search would notice. Without depth one only the counter
// fails: there what was lent fades, and the larger of a faded loan and a new one makes good for one
// of them only. What a log has lent weighs whole or not at all, so that the larger of two loans
// makes good for both; a fixed window's weighs in its own cell alone.
func TestSearchFindsBrokenRules(t *testing.T) {
	mutants := map[string]space{
		"fixed window, a row heard twice counts twice": without(
			"fixed window, clocks a cell apart", mutant{hear: hearTwice}),
		"fixed window, rows of one cell count in the next": without(
			"fixed window, clocks a cell apart", mutant{hear: hearLate}),
		"fixed window, regained without having been given": without(
			"fixed window, clocks a cell apart", mutant{hear: hearTooMuch}),

		"counter, depth one removed": without("counter", mutant{lendsOn: true}),
		"counter, no shadow":         without("counter", mutant{forgets: true}),
		"counter, no promise term":   without("counter", mutant{overlooks: true}),
		"counter, no guard":          without("counter, clocks a tick apart", mutant{}),

		"log, no shadow":       without("log", mutant{forgets: true}),
		"log, no promise term": without("log", mutant{overlooks: true}),
		"log, two cells in a window, no shadow": without("log, two cells in a window",
			mutant{forgets: true}),
		"log, two cells in a window, no promise term": without("log, two cells in a window",
			mutant{overlooks: true}),
		"log, a two ticks ahead, no guard": without("log, a two ticks ahead", mutant{}),
		"log, b two ticks ahead, no guard": without("log, b two ticks ahead", mutant{}),
	}
	for name, s := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := explore(&s, searchStates)
			switch {
			case f.broken == "":
				t.Fatalf("not noticed in %d states", f.states)
			case s.kind.Sliding() && !strings.HasPrefix(f.broken, overLimit):
				t.Fatalf("noticed after %d states, but not for what the rule prevents: %s",
					f.states, f.broken)
			}
			t.Logf("noticed after %d states: %s; the way there: %s", f.states, f.broken, f.way)
		})
	}
}
