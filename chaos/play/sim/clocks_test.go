//go:build !race

package sim

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
)

// What clocks that are apart may admit is allowed from the cell on in which they came apart, and in
// none before.
func TestClocksExcuseNothingBefore(t *testing.T) {
	w, err := newWorld(Draw(1, Config{For: 60_000_000, Algorithm: "token_bucket"}), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	b := w.limits[0].buckets[0]
	b.flows[0].moves("r1", 1, 0,
		algorithms.Row{Lent: 50, BurstLent: 50})
	w.steps = []clockStep{{from: b.cells().Opens(10), by: 1_000_000}}
	if before := b.forClocks(9); before != 0 {
		t.Errorf("%d units are allowed in the cell before", before)
	}
	if now, after := b.forClocks(10), b.forClocks(11); now == 0 || after != now {
		t.Errorf("%d units are allowed in the cell of the step, and %d in the next", now, after)
	}
	w.steps = append(w.steps, clockStep{from: b.cells().Opens(12), by: 30_000_000})
	if first, more := b.forClocks(10), b.forClocks(12); first >= more {
		t.Errorf("%d units are allowed, and %d once clocks are further apart", first, more)
	}
}
