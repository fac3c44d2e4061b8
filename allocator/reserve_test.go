//go:build !race

package allocator

import (
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"pgregory.net/rapid"
)

// TestReservePart: what a node may admit out of a reserve.
func TestReservePart(t *testing.T) {
	for _, c := range []struct {
		units, burst    quantity.Units
		nodes           int64
		sliding, bucket bool
		want            quantity.Units
	}{
		{40, 0, 1, false, false, 40},
		{40, 0, 3, false, false, 13},
		{40, 0, 41, false, false, 0},
		{40, 0, 1, true, false, 20},
		{40, 0, 3, true, false, 6},
		{41, 0, 1, true, false, 20},
		{1, 0, 1, true, false, 0},
		{0, 0, 1, false, false, 0},
		{40, 40, 1, false, true, 20}, // a bucket may be asked for two windows' parts at once
		{40, 100, 1, false, true, 40},
		{40, 100, 3, false, true, 13},
		{40, 3, 1, false, true, 1},
		{40, 1, 1, false, true, 0},
		{1 << 51, 0, 1, false, false, 1 << 51},
	} {
		if got := ReservePart(c.units, c.burst, c.nodes, c.sliding, c.bucket); got != c.want {
			t.Errorf("ReservePart(%d, %d, %d, %t, %t) = %d, want %d", c.units, c.burst, c.nodes,
				c.sliding, c.bucket, got, c.want)
		}
	}
}

// TestStored: a region's reserve is rounded down, so that of a small entitlement the store keeps at
// least one unit.
func TestStored(t *testing.T) {
	for _, c := range []struct {
		units, burst         quantity.Units
		reserve              quantity.PPM
		wantUnits, wantBurst quantity.Units
	}{
		{400, 40, 100_000, 360, 36},
		{400, 40, 0, 400, 40},
		{400, 40, PPM, 0, 0},
		{1, 1, PPM - 1, 1, 1},
		{1, 0, 500_000, 1, 0},
		{3, 3, 500_000, 2, 2},
		{0, 0, 500_000, 0, 0},
		{1 << 51, 1 << 51, 1, 1<<51 - 1<<51/PPM, 1<<51 - 1<<51/PPM},
	} {
		got := Split{Units: []quantity.Units{c.units},
			Burst: []quantity.Units{c.burst}}.Stored(c.reserve)
		if got.Units[0] != c.wantUnits || got.Burst[0] != c.wantBurst {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// TestReservesFitBesideTheStores: for any split, what the stores of all regions hold and what all
// nodes may admit without them is together no more than the limit. A store that holds some of a
// burst also refills it.
func TestReservesFitBesideTheStores(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		units := rapid.OneOf(rapid.Int64Range(1, 1<<51), rapid.Int64Range(1, 100))
		limit, burst := quantity.Units(units.Draw(t, "limit")), quantity.Units(0)
		bucket, sliding := rapid.Bool().Draw(t, "bucket"), false
		if bucket {
			burst = quantity.Units(units.Draw(t, "burst"))
		} else {
			sliding = rapid.Bool().Draw(t, "sliding")
		}
		weights := rapid.SliceOfN(drawUnits(0, 1_000_000), 1, 64).Draw(t, "weights")
		weights[0]++ // not all zero
		whole := SplitOf(limit, burst, weights, rapid.Uint64().Draw(t, "rotation"), false)
		stored := whole.Stored(quantity.PPM(rapid.Int64Range(0, PPM).Draw(t, "reserve")))
		var all, allBurst quantity.Units
		for i := range weights {
			nodes := rapid.Int64Range(1, 10_000).Draw(t, "nodes")
			kept, keptBurst := whole.Units[i]-stored.Units[i], whole.Burst[i]-stored.Burst[i]
			part := ReservePart(kept, keptBurst, nodes, sliding, bucket)
			if part < 0 || part*quantity.Units(nodes) > kept || sliding &&
				2*part*quantity.Units(nodes) > kept || bucket &&
				2*part*quantity.Units(nodes) > keptBurst {
				t.Fatalf("region %d: %d for each of %d nodes, of %d units and %d of burst", i, part,
					nodes, kept, keptBurst)
			}
			if stored.Units[i] < 0 || stored.Burst[i] > 0 && stored.Units[i] == 0 {
				t.Fatalf("region %d: the store holds %d units and %d of burst", i, stored.Units[i],
					stored.Burst[i])
			}
			all += stored.Units[i] + part*quantity.Units(nodes)
			allBurst += stored.Burst[i] + keptBurst
		}
		if all > limit || allBurst != burst {
			t.Fatalf("%d units of a limit of %d, %d of a burst of %d", all, limit, allBurst, burst)
		}
	})
}

// TestReserveOfABucketIsABucket: whenever nodes admit units of a reserve, one bucket with the
// reserve's units and burst would admit them too.
func TestReserveOfABucketIsABucket(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		units, burst := quantity.Units(rapid.Int64Range(0, 50).Draw(t, "units")),
			quantity.Units(rapid.Int64Range(0, 50).Draw(t, "burst"))
		nodes, window := rapid.Int64Range(1, 4).Draw(t, "nodes"), rapid.Int64Range(1, 20).Draw(t,
			"window")
		part := ReservePart(units, burst, nodes, false, true)
		// A unit counts as many parts as the window has microseconds.
		level, last, now := burst*quantity.Units(window), int64(0), int64(0)
		spent := map[[2]int64]quantity.Units{} // by node and window
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 2*window)).Draw(t, "later")
			at := [2]int64{rapid.Int64Range(0, nodes-1).Draw(t, "node"), now / window}
			cost := rapid.OneOf(rapid.Just(part-spent[at]), drawUnits(1, 3)).Draw(t, "cost")
			if spent[at]+cost > part {
				continue
			}
			spent[at] += cost
			level, last = min(level+units*quantity.Units(now-last), burst*quantity.Units(window))-
				cost*quantity.Units(window), now
			if level < 0 {
				t.Fatalf("%d below zero at %d: a part of %d of %d units and a burst of %d", -level,
					now, part, units, burst)
			}
		}
	})
}
