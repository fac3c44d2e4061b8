//go:build !race

package sim

import "testing"

// What checkpoints may miss is measured: a hundredth of the share, and what the region admitted in
// its busiest second, however much it might have admitted in one. A judge that took the whole limit
// for that second let 345 units pass where 6 are printed.
func TestWhatCheckpointsMissIsMeasured(t *testing.T) {
	const each, seconds = 6, 40
	act := at(1, Steady, seconds, of(0))
	act.Amount, act.Cost = each*1000, 1
	w, err := newWorld(pair(1, hourly, nil, act), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.counts.Deeds = map[Deed]int64{}
	w.run((seconds + 1) * 1_000_000)
	if w.broken != nil {
		t.Fatal(w.broken)
	}
	b, r := w.limits[0].buckets[0], w.regions[0]
	used, missed := b.used(r), b.uncounted(r)
	if used < each*(seconds-2) || missed < 5+each || missed > 5+2*each {
		t.Errorf("of %d units used checkpoints may miss %d, want a hundredth of 500 and some %d of a second",
			used, missed, each)
	}
}
