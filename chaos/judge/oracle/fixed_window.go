package oracle

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// windowOf returns the number of the window that contains a store time (µs).
func windowOf(l Limit, at int64) int64 {
	if l.Calendar != nil {
		return l.Calendar.cellOf(at)
	}
	return floorDiv(at, l.Window.Microseconds())
}

// floorDiv returns a / b rounded down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// add returns a + b for b >= 0. It returns the largest number instead of overflowing, so that a sum
// of absurd costs is absurdly large and not negative.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// windowCeiling sums up one bucket by labelled window.
type windowCeiling struct {
	limit Limit
	cells map[int64]*windowSums
}

// windowSums is what was admitted in one window.
type windowSums struct {
	known, unknown int64
	regions        map[string]int64 // known and unknown together
}

func newWindowCeiling(l Limit) ceiling {
	return &windowCeiling{limit: l, cells: map[int64]*windowSums{}}
}

func (w *windowCeiling) at(cell int64) *windowSums {
	s, ok := w.cells[cell]
	if !ok {
		s = &windowSums{regions: map[string]int64{}}
		w.cells[cell] = s
	}
	return s
}

// answered charges the cell that the decision names, even a wrong one: naming a wrong cell is
// another violation, which the judge finds.
func (w *windowCeiling) answered(a Answer, admitted int64) {
	s := w.at(a.Cell)
	s.known = add(s.known, admitted)
	if admitted > 0 {
		s.regions[a.Region] = add(s.regions[a.Region], admitted)
	}
}

func (w *windowCeiling) unknown(a Answer, from, to int64) {
	for cell := windowOf(w.limit, from); cell <= windowOf(w.limit, to); cell++ {
		s := w.at(cell)
		s.unknown = add(s.unknown, a.Cost)
		s.regions[a.Region] = add(s.regions[a.Region], a.Cost)
	}
}

func (w *windowCeiling) tallies() []tally {
	found := make([]tally, 0, len(w.cells))
	for _, cell := range slices.Sorted(maps.Keys(w.cells)) {
		s := w.cells[cell]
		found = append(found, tally{cell: cell, all: add(s.known, s.unknown), known: s.known})
	}
	return found
}

func (w *windowCeiling) counted(t tally) (regions map[string]int64, unknown int64) {
	s := w.cells[t.cell]
	return s.regions, s.unknown
}

// windowExceeded describes a cell above the limit.
func windowExceeded(l Limit, t tally, _ int64) string {
	return fmt.Sprintf("%d units admitted on a limit of %d, %d too many", t.all, l.Limit,
		t.all-l.Limit)
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
