//go:build !race

package allocator

import (
	"math/big"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"pgregory.net/rapid"
)

// TestChanged: a demand has changed if it differs by more than a quarter and by more than chance
// explains.
func TestChanged(t *testing.T) {
	for _, x := range []struct {
		old, now quantity.MilliRate
		want     bool
	}{
		{0, 0, false}, {0, 1, false}, {0, 100_000, true}, {100_000, 0, true},
		{300_000, 300_000, false},
		{300_000, 374_000, false}, {300_000, 400_000, true}, {10_000, 20_000, false},
		{10_000, 60_000, true},
		{1 << 56, 1 << 56, false}, {0, 1 << 56, true}, {1 << 56, 1 << 55, true},
	} {
		if got := Changed(x.old, x.now, 1); got != x.want {
			t.Errorf("from %d to %d: changed %t", x.old, x.now, got)
		}
	}
}

// TestChangedIsByChance: Changed is the inequality that its comment states, in numbers of any size.
// The difference must be more than a quarter of the old demand, and more than three standard
// deviations of a count over two ticks. With n units counted in two ticks, three deviations are 3
// sqrt(n).
func TestChangedIsByChance(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		rate := rapid.OneOf(rapid.Int64Range(0, 100_000), rapid.Int64Range(0, maxRate))
		old, now := quantity.MilliRate(rate.Draw(r, "old")), quantity.MilliRate(rate.Draw(r, "now"))
		apart := new(big.Rat).SetInt64(int64(max(old-now, now-old)))
		two := big.NewRat(2*Interval, 1000*Second) // from milliunits a second to units in two ticks
		units, counted := new(big.Rat).Mul(apart, two),
			new(big.Rat).Mul(big.NewRat(int64(max(old, now)), 1), two)
		square, chance := new(big.Rat).Mul(units, units), new(big.Rat).Mul(big.NewRat(9, 1),
			counted)
		want := apart.Cmp(big.NewRat(int64(old/4), 1)) > 0 && square.Cmp(chance) > 0
		if got := Changed(old, now, 1); got != want {
			r.Fatalf("from %d to %d: changed %t, want %t", old, now, got, want)
		}
	})
}

func TestLikely(t *testing.T) {
	for name, c := range map[string]struct{ mean, latest, want quantity.MilliRate }{
		"little to count: the latest":         {300_000, 15_999, 15_999},
		"as before: the mean":                 {300_000, 320_000, 300_000},
		"plainly more":                        {300_000, 900_000, 900_000},
		"plainly less":                        {300_000, 30_000, 30_000},
		"a mean of nothing, and little comes": {0, 16_000, 0},
	} {
		if got := Likely(c.mean, c.latest, 1); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestSmoothed: the mean reaches a demand that lasts, from above and below, without passing it.
func TestSmoothed(t *testing.T) {
	for _, c := range []struct{ mean, rate, want quantity.MilliRate }{
		{0, 900_000, 900_000}, {300_000, 340_000, 310_000}, {340_000, 300_000, 330_000},
		{100, 103, 103}, {103, 100, 100},
	} {
		if got := Smoothed(c.mean, c.rate, 1); got != c.want {
			t.Errorf("from %d to %d: %d, want %d", c.mean, c.rate, got, c.want)
		}
	}
	suite.Check(t, func(r *rapid.T) {
		rate := rapid.OneOf(rapid.Int64Range(0, 100_000), rapid.Int64Range(0, maxRate))
		mean, to := quantity.MilliRate(rate.Draw(r, "mean")),
			quantity.MilliRate(rate.Draw(r, "rate"))
		next := mean
		for n := 0; next != to; n++ {
			was := next
			next = Smoothed(next, to, 1)
			if next < min(was, to) || next > max(was, to) || next == was || n > 200 {
				r.Fatalf("from %d to %d: after %d ticks at %d, before that at %d", mean, to, n,
					next, was)
			}
		}
	})
}

// TestLatest: what came since the last sample counts after half a tick, and only upwards.
func TestLatest(t *testing.T) {
	var d Demand
	d.Sample(Requests{Admitted: 20}, Interval)
	rate := d.Rate(Second)
	for _, c := range []struct {
		admitted quantity.Units
		elapsed  int64
		want     quantity.MilliRate
	}{
		{1000, Interval/2 - 1, 100_000}, {20, Interval / 2, 200_000}, {0, Interval, 100_000},
		{40, Interval, 200_000},
	} {
		if got := d.Latest(rate, Requests{Admitted: c.admitted}, c.elapsed); got != c.want {
			t.Errorf("%d units in %d us after 100 a second: %d, want %d", c.admitted, c.elapsed,
				got, c.want)
		}
	}
	var quick, slow Demand
	quick.Sample(Requests{Admitted: 10}, 1)
	slow.Sample(Requests{Admitted: 10}, Interval/2)
	if quick != slow {
		t.Errorf("a sample of a microsecond counts as %d, of half a tick as %d", quick.Rate(Second),
			slow.Rate(Second))
	}
}

// TestCappedDemandEnds: what capped classes ask for is expected until their part is used up, and is no
// part of the rate.
func TestCappedDemandEnds(t *testing.T) {
	for _, c := range []struct {
		capped     quantity.MilliRate
		room, want quantity.Units
	}{{0, 50, 30}, {2_000, 50, 50}, {20_000, 50, 80}, {20_000, -5, 30}} {
		o := Outlook{Used: 20, Rate: 1_000, Ahead: 10 * Second, Capped: c.capped, Room: c.room}
		if got := o.Total(); got != c.want {
			t.Errorf("capped %d, room %d: %d, want %d", c.capped, c.room, got, c.want)
		}
	}
	var d Demand
	mean := quantity.MilliRate(0)
	for range 10 {
		r := Requests{Admitted: 50, Capped: 40, Squares: 50}
		d.Sample(r, Interval)
		mean = SmoothedCapped(mean, r.Capped, Interval)
	}
	if rate := d.Rate(Second); rate != 50_000 || mean < 180_000 || mean > 200_000 {
		t.Errorf("rate %d, capped %d", rate, mean)
	}
	for range 60 {
		mean = SmoothedCapped(mean, 0, Interval)
	}
	if mean != 0 {
		t.Errorf("capped %d long after the last of it: a unit is kept for nobody", mean)
	}
	if latest := d.Latest(50_000, Requests{Admitted: 500, Capped: 500}, Interval); latest != 50_000 {
		t.Errorf("latest %d", latest)
	}
}
