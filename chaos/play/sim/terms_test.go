//go:build !race

package sim

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// TestTheJudgeAllowsNoMoreThanIsPrinted: the judge's own terms are those of quotad limits bound,
// but for the units that rounding gives to some keys only: one for each region, twice that of
// buckets, and that for each window in a cell.
func TestTheJudgeAllowsNoMoreThanIsPrinted(t *testing.T) {
	terms := map[string]int{}
	for seed := range uint64(300) {
		w, err := newWorld(Draw(seed+1, Config{For: 60_000_000, Wider: seed%2 == 0,
			Documents: seed%3 == 0 && seed%5 != 0, Envoys: seed%5 == 0}), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range w.buckets() {
			for _, r := range w.regions {
				comparesTerms(t, w, b, r, terms)
			}
		}
		w.close()
	}
	for _, cause := range []string{"key-deleted", "clock-back", "local", "store-lost", "reset",
		"clocks-apart", "late-envoy"} {
		if terms[cause] < 50 {
			t.Errorf("compared too few: %v", terms)
		}
	}
}

// comparesTerms compares the terms of a bucket in a region, and counts them by cause.
func comparesTerms(t *testing.T, w *world, b *bucket, r *region, compared map[string]int) {
	t.Helper()
	nodes := len(r.nodes)
	exposures := b.exposures(nodes)
	const rate, apart = 7, 700_000
	for i := range exposures {
		exposures[i].Rate, exposures[i].Clock = rate, apart
	}
	perCell := max(1, b.cell()/b.window()) // where a cell of a bucket is many of its windows
	rounding := quantity.Units(2 * perCell * int64(len(w.regions)))
	terms := map[string]quantity.Units{"key-deleted": b.termForgotten(r.index),
		"clock-back": b.termMemory(r.index)}
	if b.limit.kind().Bucket() {
		terms["clock-back"] = b.termAgain(r.index, apart)
	}
	if b.limit.policy.Reserve() == 0 {
		terms["local"] = b.termLocal(r.index, nodes, nodes)
	}
	if b.recovers() {
		terms["store-lost"] = b.termCheckpoints(r.index, rate)
		terms["reset"] = b.termMemory(r.index)
	}
	if b.limit.policy.Assign != nil {
		terms["late-envoy"] = b.termLateEnvoy()
	}
	if b.limit.kind() != algorithms.FixedWindow {
		terms["clocks-apart"] = b.termClocks(apart, algorithms.MaxUnits, algorithms.MaxUnits)
	}
	for cause, units := range terms {
		compared[cause]++
		if printed := bound(exposures, cause); units > printed+rounding {
			t.Errorf("seed %d, %s, %s of %s: the judge allows %d, printed is %d", w.plan.Seed,
				b.limit.policy.Name, cause, r.name, units, printed)
		}
	}
}

// exposures returns the numbers of the bucket's limit, by every document, from which the bounds are
// computed.
func (b *bucket) exposures(nodes int) (all []allocator.Exposure) {
	for _, p := range b.limit.versions {
		all = append(all, b.exposure(p.written, nodes))
	}
	return all
}

func (b *bucket) exposure(p *policy.Limit, nodes int) allocator.Exposure {
	k := b.limit.kind()
	limit, burst := p.Shared()
	e := allocator.Exposure{Kind: k, Limit: limit, Window: p.Window.Microseconds(),
		Cell:      p.Cell().Microseconds(),
		Recovered: algorithms.Recovers(k, p.Window.Microseconds()),
		Lending:   quantity.PPM(p.LendingLimit), Borrowing: quantity.PPM(p.BorrowingLimit),
		Reserve: quantity.PPM(p.Reserve()), Nodes: int64(nodes),
		ClockMargin: algorithms.ClockMargin}
	if p.Assign != nil {
		e.TTL, e.EnvoyBurst = p.Assign.TTL.Microseconds(), p.Assign.MaxBurst
	}
	if p.Home() {
		e.Lending, e.Borrowing = allocator.PPM, quantity.PPM(policy.Unlimited)
	}
	for rotation := range len(p.Weights) {
		e.Splits = append(e.Splits, allocator.SplitOf(limit, burst, p.Weights, uint64(rotation),
			p.Home()))
	}
	return e
}

// bound returns the largest of the printed bounds for a cause, in units.
func bound(exposures []allocator.Exposure, cause string) (most quantity.Units) {
	for _, e := range exposures {
		for _, b := range allocator.Bounds(e) {
			if b.Cause == cause {
				most = max(most, b.Most)
			}
		}
	}
	return most
}
