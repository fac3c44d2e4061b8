package sim

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// TestTheJudgeAllowsNoMoreThanIsPrinted: the judge's own terms are those of quotad limits bound, but
// for the units that rounding gives to some keys only: one for each region, twice that of buckets.
func TestTheJudgeAllowsNoMoreThanIsPrinted(t *testing.T) {
	terms := 0
	for seed := range uint64(300) {
		w, err := newWorld(Draw(seed+1, Config{For: 60_000_000, Wider: seed%2 == 0,
			Documents: seed%3 == 0}), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range w.buckets() {
			for _, r := range w.regions {
				terms += comparesTerms(t, w, b, r)
			}
		}
		w.close()
	}
	if terms < 5000 {
		t.Errorf("%d terms compared", terms)
	}
}

// comparesTerms compares the terms of a bucket in a region, and returns how many there are.
func comparesTerms(t *testing.T, w *world, b *bucket, r *region) int {
	t.Helper()
	nodes := len(r.nodes)
	exposures := b.exposures(nodes)
	const rate, apart = 7, 700_000
	for i := range exposures {
		exposures[i].Rate, exposures[i].Clock = rate, apart
	}
	rounding := quantity.Units(2 * len(w.regions))
	terms := map[string]quantity.Units{"key-deleted": b.termForgotten(r.index),
		"clock-back": b.termMemory(r.index)}
	if b.limit.kind().Bucket() {
		terms["clock-back"] = b.termAgain(r.index, apart)
	}
	if b.limit.policy.Reserve() == 0 {
		terms["local"] = b.termLocal(r.index, nodes)
	}
	if b.recovers() {
		terms["store-lost"] = b.termCheckpoints(r.index, rate)
		terms["reset"] = b.termMemory(r.index)
	}
	if b.limit.kind() != algorithms.FixedWindow {
		terms["clocks-apart"] = b.termClocks(apart, algorithms.MaxUnits, algorithms.MaxUnits)
	}
	for cause, units := range terms {
		if printed := bound(exposures, cause); units > printed+rounding {
			t.Errorf("seed %d, %s, %s of %s: the judge allows %d, printed is %d", w.plan.Seed,
				b.limit.policy.Name, cause, r.name, units, printed)
		}
	}
	return len(terms)
}
