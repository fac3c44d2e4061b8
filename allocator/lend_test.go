//go:build !race

package allocator

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

func TestMargin(t *testing.T) {
	o := Outlook{Rate: 100_000, Ahead: Second} // 1000 in a window of 10 s, so a deviation of 31
	for _, c := range []struct {
		kind    algorithms.Kind
		slack   quantity.Units
		regions int64
		want    quantity.Units
	}{
		{algorithms.SlidingWindowCounter, 1000, 3, 31}, {algorithms.SlidingWindowLog, 1000, 3, 31},
		{algorithms.SlidingWindowLog, 60, 3, 20}, {algorithms.SlidingWindowLog, 0, 3, 0},
		{algorithms.SlidingWindowLog, -60, 3, 0},
		{algorithms.FixedWindow, 1000, 3, 0}, {algorithms.TokenBucket, 1000, 3, 0},
		{algorithms.LeakyBucket, 1000, 3, 0},
	} {
		if got := frameOf(c.kind, 10*Second).Margin(o, 1, c.slack, c.regions); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestMarginsFitIntoTheSlack: if every region keeps a margin, all together keep no more than what
// they leave of the limit.
func TestMarginsFitIntoTheSlack(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		f := frameOf(algorithms.SlidingWindowCounter, rapid.Int64Range(1, 3600*Second).Draw(r,
			"window"))
		slack, regions := quantity.Units(rapid.Int64Range(0, 1<<51).Draw(r, "slack")),
			rapid.Int64Range(1, 64).Draw(r, "regions")
		var kept quantity.Units
		for range regions {
			kept += f.Margin(Outlook{Rate: quantity.MilliRate(rapid.Int64Range(0, maxRate).Draw(r,
				"rate"))}, rapid.Int64Range(1, maxSpread).Draw(r, "spread"), slack, regions)
		}
		if kept > slack {
			r.Fatalf("%d regions keep %d of %d", regions, kept, slack)
		}
	})
}

func TestTheTailOfACell(t *testing.T) {
	long := FrameOf(algorithms.FixedWindow, 60*Second, 60*Second)
	short := FrameOf(algorithms.FixedWindow, Second, Second)
	for _, c := range []struct {
		f      Frame
		o      Outlook
		tail   bool
		others bool // it keeps some for others
	}{
		{long, Outlook{Rate: 100, Ahead: 5 * Second}, true, true}, // half a unit
		{long, Outlook{Rate: 101, Ahead: 5 * Second}, false, true},
		{long, Outlook{Rate: 101, Ahead: Horizon}, true, false},
		{long, Outlook{Rate: 101, Ahead: Horizon + 1}, true, true},
		{long, Outlook{Rate: 1_000_000, Ahead: Horizon}, false, false},
		{long, Outlook{Rate: maxRate, Ahead: Second}, false, false},
		{long, Outlook{Steady: true, Ahead: Second}, true, true},
		{short, Outlook{Ahead: Second}, false, true},
	} {
		if tail, others := c.f.TailLeft(c.o), c.f.KeepsForOthers(c.o); tail != c.tail ||
			others != c.others {
			t.Errorf("%+v, %+v: tail %t, keeps for others %t", c.f, c.o, tail, others)
		}
	}
}

func TestSpare(t *testing.T) {
	for _, c := range []struct{ left, lendable, lent, want quantity.Units }{
		{30, 100, 0, 30}, {30, 100, 80, 20}, {30, 100, 100, 0}, {30, 100, 110, 0}, {-5, 100, 0, 0},
		{100, 100, 40, 60},
	} {
		if got := Spare(c.left, c.lendable, c.lent); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if Unmet(7, 5) != 2 || Unmet(5, 7) != 0 {
		t.Error("what is unmet")
	}
}

// TestUnremarkable: the nodes of one region are all silent only if together they want no more than
// its entitlement.
func TestUnremarkable(t *testing.T) {
	own := RegionPart{Entitlement: 100, Burst: 10}
	for _, c := range []struct {
		total quantity.Units
		nodes int64
		free  quantity.Units
		want  bool
	}{{100, 1, 5, true}, {101, 1, 5, false}, {100, 1, 4, false}, {33, 3, 5, true},
		{34, 3, 5, false}} {
		if got := Unremarkable(c.total, c.nodes, own, c.free); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

func TestWorthSaying(t *testing.T) {
	for _, c := range []struct {
		old, now, all quantity.Units
		want          bool
	}{{100, 50, 100, false}, {100, 49, 100, true}, {49, 100, 100, true}, {100, 201, 1000, false},
		{100, 301, 1000, true}, {0, 0, 0, false}, {0, 21, 100, true}, {0, 20, 100, false}} {
		if got := WorthSaying(c.old, c.now, c.all); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

func TestRegionPartOf(t *testing.T) {
	for _, c := range []struct {
		lending, borrowing quantity.PPM
		want               RegionPart
	}{
		{950_000, -1, RegionPart{Entitlement: 400, Burst: 10, Lendable: 380, LendableBurst: 9,
			Borrowable: 1000}},
		{0, 0, RegionPart{Entitlement: 400, Burst: 10}},
		{PPM, 500_000, RegionPart{Entitlement: 400, Burst: 10, Lendable: 400, LendableBurst: 10,
			Borrowable: 200}},
		{PPM, 5 * PPM, RegionPart{Entitlement: 400, Burst: 10, Lendable: 400, LendableBurst: 10,
			Borrowable: 1000}},
	} {
		if got := RegionPartOf(400, 10, 1000, c.lending, c.borrowing); got != c.want {
			t.Errorf("lending %d, borrowing %d: %+v, want %+v", c.lending, c.borrowing, got, c.want)
		}
	}
}

// TestTarget: without a rival a region's target is all that it may have; with one it is its part of
// the water-fill, which is never more.
func TestTarget(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		units := rapid.Int64Range(0, 300)
		var demanders []Demander
		rival, left := false, quantity.Units(0)
		for i := range rapid.IntRange(1, 6).Draw(r, "regions") {
			p := RegionPart{Entitlement: quantity.Units(units.Draw(r, "entitlement")),
				Borrowable: quantity.Units(units.Draw(r, "borrow"))}
			p.Lendable = p.Entitlement
			c := p.Demander(quantity.Units(units.Draw(r, "demand")))
			demanders = append(demanders, c)
			rival = rival || i > 0 && c.Demand > c.Entitlement
			left += max(c.Entitlement-c.Demand, 0)
		}
		own, scratch := demanders[0], &Scratch{}
		got, most := scratch.Target(demanders), min(demanders[0].Demand,
			demanders[0].Entitlement+demanders[0].Borrow)
		switch {
		case !rival && got != most:
			r.Fatalf("%v: %d, without a rival it may have %d", demanders, got, most)
		case rival && got != waterFill(demanders)[0]:
			r.Fatalf("%v: %d", demanders, got)
		case got > most || rival && got > own.Entitlement+left:
			r.Fatalf("%v: %d of at most %d", demanders, got, most)
		}
	})
}
