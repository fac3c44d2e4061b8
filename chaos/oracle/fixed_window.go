package oracle

import (
	"maps"
	"math"
	"slices"
)

// windowOf is the number of the window that a store time (µs) lies in.
func windowOf(l Limit, at int64) int64 {
	return floorDiv(at, l.Window.Microseconds())
}

// floorDiv is a / b rounded down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// add is a + b for b >= 0, held at the largest number instead of wrapping: a
// sum of absurd costs must look absurd, not negative.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// windowCeiling holds the sums of one bucket by labelled window.
type windowCeiling struct {
	limit Limit
	cells map[int64]*tally
}

func newWindowCeiling(l Limit) ceiling {
	return &windowCeiling{limit: l, cells: map[int64]*tally{}}
}

func (w *windowCeiling) at(cell int64) *tally {
	t, ok := w.cells[cell]
	if !ok {
		t = &tally{cell: cell, regions: map[string]int64{}}
		w.cells[cell] = t
	}
	return t
}

// answered charges the cell that the decision names, be it right or wrong:
// naming a wrong one is another offence, found by the judge.
func (w *windowCeiling) answered(a Answer, admitted int64) {
	t := w.at(a.Cell)
	t.known = add(t.known, admitted)
	if admitted > 0 {
		t.regions[a.Region] = add(t.regions[a.Region], admitted)
	}
}

func (w *windowCeiling) unknown(a Answer, from, to int64) {
	for cell := windowOf(w.limit, from); cell <= windowOf(w.limit, to); cell++ {
		t := w.at(cell)
		t.unknown = add(t.unknown, a.Cost)
		t.regions[a.Region] = add(t.regions[a.Region], a.Cost)
	}
}

func (w *windowCeiling) tallies() []tally {
	found := make([]tally, 0, len(w.cells))
	for _, cell := range slices.Sorted(maps.Keys(w.cells)) {
		found = append(found, *w.cells[cell])
	}
	return found
}

// windowPool is the fixed window of one pooled limiter: units used by cell.
type windowPool struct {
	limit int64
	used  map[int64]int64
}

func newWindowPool(l Limit) pool {
	return &windowPool{limit: l.Limit, used: map[int64]int64{}}
}

func (w *windowPool) offer(cell, _, cost int64) bool {
	if cost > w.limit-w.used[cell] {
		return false
	}
	w.used[cell] += cost
	return true
}

func (w *windowPool) clone() pool {
	return &windowPool{limit: w.limit, used: maps.Clone(w.used)}
}
