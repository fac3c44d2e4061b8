//go:build !race

package sim

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

// TestATimeThatNobodyHeardComesAgain provokes what is printed for a store's time that is lost with
// its data (clock-back): one node decides while the clock is ahead, and is dead when the other one,
// which was dead meanwhile, opens the store that lost everything. Each window comes once more. The
// judge allows that, and no more.
func TestATimeThatNobodyHeardComesAgain(t *testing.T) {
	p := pair(2, shortly, [][2]int64{{8, 17}, {22, 40}},
		at(0, Stick, 18, on(1)), at(6, Crash, 13, on(0)), at(8, StoreClock, 9, by(20)),
		at(17, Crash, 26, on(1)), at(17.5, StoreAnew, 0))
	w, err := newWorld(p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.counts.Deeds = map[Deed]int64{}
	w.run(p.End)
	w.finish()
	if w.broken != nil {
		t.Error(w.broken)
	}
	b, most, times := w.limits[0].buckets[0], int64(0), 0
	for cell, level := range b.judge.Levels(p.Keys[0]) {
		if excess := level - int64(b.ceiling(quantity.Cell(cell))); excess > 0 {
			most = max(most, excess)
			times++
		}
	}
	if term := int64(b.termMemory(0)); 2*most < term || most > term || times < 5 {
		t.Errorf("%d units above the limit in the worst of %d windows, and %d printed", most, times,
			term)
	}
}
