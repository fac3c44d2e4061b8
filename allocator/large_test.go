//go:build !race

package allocator

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestTheOrderOfLargeCosts: of two regions one comes first, whoever asks; over many cells each does
// about as often.
func TestTheOrderOfLargeCosts(t *testing.T) {
	first := 0
	const cells = 10_000
	for cell := range quantity.Cell(cells) {
		a, b := ComesFirst("b", cell, "eu", "us"), ComesFirst("b", cell, "us", "eu")
		if a == b {
			t.Fatalf("cell %d: eu before us is %v, and us before eu %v", cell, a, b)
		}
		if a {
			first++
		}
	}
	if first < cells*45/100 || first > cells*55/100 {
		t.Errorf("eu comes first in %d of %d cells", first, cells)
	}
	suite.Check(t, func(r *rapid.T) {
		name := rapid.StringN(1, 8, -1)
		a, b, c := name.Draw(r, "a"), name.Draw(r, "b"), name.Draw(r, "c")
		cell := quantity.Cell(rapid.Int64Range(0, 1<<40).Draw(r, "cell"))
		if ComesFirst("b", cell, a, b) && ComesFirst("b", cell, b, c) && !ComesFirst("b", cell, a, c) {
			r.Fatalf("in cell %d %q comes before %q, that before %q, and that before the first", cell, a, b, c)
		}
	})
}

func TestReach(t *testing.T) {
	eu := RegionPart{Lendable: 380, LendableBurst: 38}
	ap := RegionPart{Lendable: 190, LendableBurst: 19}
	for name, c := range map[string]struct {
		own   RegionPart
		burst bool
		want  quantity.Units
	}{
		"all that others may lend":       {RegionPart{Entitlement: 400, Borrowable: 1000}, false, 970},
		"all that it may borrow":         {RegionPart{Entitlement: 400, Borrowable: 100}, false, 500},
		"tokens, which have no such end": {RegionPart{Entitlement: 400, Burst: 40, Borrowable: 1}, true, 97},
	} {
		if got := Reach(c.own, []RegionPart{eu, ap}, c.burst); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestSpread: the spread is what a mean of squares says it is, and follows what is asked for.
func TestSpread(t *testing.T) {
	var d Demand
	sample := func(costs ...quantity.Units) {
		var r Requests
		for i, cost := range costs {
			if i%2 == 0 {
				r.Admit(cost, 1000)
			} else {
				r.Deny(cost, 1000)
			}
		}
		d.Sample(r, Interval)
	}
	for _, c := range []struct {
		costs []quantity.Units
		want  int64
	}{{nil, 1}, {[]quantity.Units{1, 1, 1, 1}, 1}, {[]quantity.Units{1, 99}, 94}} {
		if sample(c.costs...); d.Spread() != c.want {
			t.Errorf("after costs of %v: %d, want %d", c.costs, d.Spread(), c.want)
		}
	}
	for range 1000 {
		sample(1, 1, 1, 1)
	}
	if got := d.Spread(); got > 2 {
		t.Errorf("after 1000 ticks of costs of 1: %d", got)
	}
	for range 100 {
		sample(1<<52, 1<<52)
	}
	if got := d.Spread(); got < 100 || got > maxSpread {
		t.Errorf("of huge costs: %d", got)
	}
}

// TestALargeCostIsNoRush: one cost of half the limit does not make the estimate of the demand jump,
// and is no plain change of it.
func TestALargeCostIsNoRush(t *testing.T) {
	var even, varied Demand
	for range demandSamples {
		var r Requests
		r.Admit(1, 1000)
		even.Sample(r, Interval)
		varied.Sample(r, Interval)
	}
	var large, many Requests
	large.Admit(500, 1000)
	for range 500 {
		many.Admit(1, 1000)
	}
	even.Sample(many, Interval)
	varied.Sample(large, Interval)
	if rush, calm := even.Rate(60*Second), varied.Rate(60*Second); rush != 2_500_000 || calm > 110_000 {
		t.Errorf("after 500 requests of 1: %d; after one of 500: %d", rush, calm)
	}
	if Changed(5_000, 100_000, varied.Spread()) || !Changed(5_000, 100_000, 1) {
		t.Error("one large cost is a plain change")
	}
}

// TestLargeDenialsAreNoRate: large costs that are denied while nothing else is asked for do not
// count.
func TestLargeDenialsAreNoRate(t *testing.T) {
	for name, c := range map[string]struct {
		r    Requests
		want quantity.Units
	}{
		"large alone":          {Requests{Denied: 900, LargeDenied: 900}, 0},
		"beside a small one":   {Requests{Denied: 901, LargeDenied: 900}, 2},
		"beside admitted ones": {Requests{Admitted: 10, Denied: 900, LargeDenied: 900}, 20},
	} {
		if got := c.r.counted(0); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestRequestsAddUp: sums are the sums of what was added, and stay in range.
func TestRequestsAddUp(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		limit := quantity.Units(rapid.Int64Range(1, 1<<40).Draw(r, "limit"))
		var whole, parts Requests
		squares := 0.0
		for i := range rapid.IntRange(0, 20).Draw(r, "requests") {
			cost := quantity.Units(rapid.Int64Range(0, 1<<40).Draw(r, fmt.Sprint("cost ", i)))
			var one Requests
			if rapid.Bool().Draw(r, "admitted") {
				one.Admit(cost, limit)
				whole.Admit(cost, limit)
			} else {
				one.Deny(cost, limit)
				whole.Deny(cost, limit)
			}
			parts.Add(one)
			squares += float64(cost) * float64(cost)
		}
		small := whole.Small()
		if whole != parts || small.Admitted < 0 || small.Denied < 0 || small.LargeAdmitted+small.LargeDenied != 0 {
			r.Fatalf("%+v in parts is %+v, and without large ones %+v", whole, parts, small)
		}
		if got := float64(whole.Squares); squares < math.MaxUint64/2 && math.Abs(got-squares) > squares/1e6 {
			r.Fatalf("squares of %g are %g", squares, got)
		}
	})
}

// TestDeviation: it is the root of units times spread, no more than the bound beyond the root of
// the units.
func TestDeviation(t *testing.T) {
	for _, c := range []struct {
		units  quantity.Units
		spread int64
		bound  quantity.Units
		want   quantity.Units
	}{
		{100, 1, 0, 10}, {100, 25, 1000, 50}, {100, 25, 20, 20}, {100, 25, 5, 10}, {-1, 25, 5, 0},
		{1 << 52, maxSpread, 1 << 51, 3037000499},
	} {
		if got := deviation(c.units, c.spread, c.bound); got != c.want {
			t.Errorf("of %d with a spread of %d, at most %d: %d, want %d", c.units, c.spread, c.bound, got, c.want)
		}
	}
}
