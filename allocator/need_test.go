//go:build !race

package allocator

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

func TestShortOfANeed(t *testing.T) {
	fixed := FrameOf(algorithms.FixedWindow, 10*Second, 10*Second)
	counter := FrameOf(algorithms.SlidingWindowCounter, 10*Second, 10*Second)
	own := RegionPart{Entitlement: 400, Borrowable: 600}
	// 700 units by the end, 450 within the horizon.
	wants := Outlook{Used: 300, Rate: 50_000, Ahead: 8 * Second}
	for name, c := range map[string]struct {
		n           Need
		short, room quantity.Units
	}{
		"all it wants within the horizon, and a deviation more": {Need{Frame: fixed,
			Outlook: wants, Own: own, Share: 400, Target: 700}, 50, 21},
		"use fades: no deviation": {Need{Frame: counter,
			Outlook: wants, Own: own, Share: 400, Target: 700}, 50, 0},
		"the target is less: no more than the entitlement": {Need{Frame: fixed,
			Outlook: wants, Own: own, Share: 370, Target: 390}, 20, 10},
		"the target is less, and it holds more than its entitlement": {Need{Frame: fixed,
			Outlook: wants, Own: own, Share: 420, Target: 440}, 20, 0},
		"the same, but it denies": {Need{Frame: fixed, Outlook: wants, Own: own,
			Share: 420, Target: 440, InNeed: true}, 20, 10},
		"more is used than is held": {Need{Frame: fixed,
			Outlook: Outlook{Used: 300, Ahead: Second}, Own: own, Share: 280, Target: 300}, 20, 4},
		"requests wait": {Need{Frame: fixed, Outlook: wants, Own: own, Share: 300, Waiting: 7}, 7,
			0},
		"requests wait for more than it may borrow": {Need{Frame: fixed, Outlook: wants, Own: own,
			Share: 990, Waiting: 800}, 10, 0},
		"a cell that opens later than the horizon": {Need{Frame: fixed,
			Outlook: Outlook{Rate: 50_000, Ahead: 10 * Second}, Opens: 4 * Second, Own: own,
			Share: 400, Target: 500}, 0, 22},
		"at home: the next request": {Need{Frame: fixed, Outlook: wants, Own: own, Share: 300,
			Target: 700, Home: true, HomeWaits: 1}, 1, 0},
		"at home: nothing waits": {Need{Frame: fixed, Outlook: wants, Own: own, Share: 300,
			Target: 700, Home: true}, 0, 0},
	} {
		if short, room := c.n.Short(); short != c.short || room != c.room {
			t.Errorf("%s: short of %d and room for %d, want %d and %d", name, short, room, c.short,
				c.room)
		}
	}
}

// TestShortStaysWithinWhatMayBeBorrowed: a region that asks for what it is short of ends with no
// more than its entitlement and what it may borrow, unless it has used more.
func TestShortStaysWithinWhatMayBeBorrowed(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		units := rapid.Int64Range(0, 1<<40)
		own := RegionPart{Entitlement: quantity.Units(units.Draw(r, "entitlement")),
			Borrowable: quantity.Units(units.Draw(r, "borrowable"))}
		most := own.Entitlement + own.Borrowable
		n := Need{Frame: frameOf(rapid.SampledFrom(algorithms.Kinds).Draw(r, "kind"), 10*Second),
			Own:     own,
			Share:   quantity.Units(units.Draw(r, "share")),
			Target:  quantity.Units(rapid.Int64Range(0, int64(most)).Draw(r, "target")),
			Waiting: quantity.Units(rapid.OneOf(rapid.Just(int64(0)), units).Draw(r, "waiting")),
			InNeed:  rapid.Bool().Draw(r, "in need"),
			Home:    rapid.Bool().Draw(r, "home")}
		n.HomeWaits = HomeWants(n.Waiting, n.InNeed)
		n.Outlook = Outlook{Used: quantity.Units(rapid.Int64Range(0, int64(most)).Draw(r, "used")),
			Rate: quantity.MilliRate(units.Draw(r, "rate")), Ahead: 10 * Second}
		short, room := n.Short()
		if room < 0 || n.Share+short > most && short > 0 {
			r.Fatalf("%+v: short of %d, room for %d, of at most %d", n, short, room, most)
		}
	})
}

func TestAsks(t *testing.T) {
	for _, c := range []struct{ short, room, offered, want quantity.Units }{
		{50, 20, 0, 50}, {50, 20, 50, 50}, {50, 20, 60, 60}, {50, 20, 1000, 70}, {-10, 20, 5, 5},
	} {
		if got := WithRoom(c.short, c.room, c.offered); got != c.want {
			t.Errorf("short of %d with room for %d, %d on offer: %d, want %d", c.short, c.room,
				c.offered, got, c.want)
		}
	}
	for _, c := range []struct {
		waiting quantity.Units
		inNeed  bool
		want    quantity.Units
	}{{0, false, 0}, {0, true, 1}, {5, true, 5}, {5, false, 5}} {
		if got := HomeWants(c.waiting, c.inNeed); got != c.want {
			t.Errorf("at home, %d wait, in need %t: %d", c.waiting, c.inNeed, got)
		}
	}
	for _, c := range []struct {
		short, pending, waiting quantity.Units
		inNeed, want            bool
	}{
		{100, 0, 0, true, false}, {100, 25, 0, true, false}, {101, 25, 0, true, true},
		{101, 25, 0, false, false}, {1, 9, 1, false, true},
	} {
		if got := AskAnew(c.short, c.pending, c.waiting, c.inNeed); got != c.want {
			t.Errorf("%+v: asks anew %t", c, got)
		}
	}
	for _, c := range []struct {
		units quantity.Units
		peers int
		want  quantity.Units
	}{{10, 0, 10}, {10, 1, 10}, {10, 3, 4}, {9, 3, 3}, {1, 4, 1}} {
		if got := EachOf(c.units, c.peers); got != c.want {
			t.Errorf("%d units of %d peers: %d of each, want %d", c.units, c.peers, got, c.want)
		}
	}
}

// TestTail: only a region that denies asks peers that are thought to have nothing, and only where
// use does not fade or cells are long.
func TestTail(t *testing.T) {
	for _, k := range algorithms.Kinds {
		for _, cell := range []int64{Second, LongCell - 1, LongCell} {
			f := FrameOf(k, 100*Second, cell)
			want := quantity.Units(0)
			if k == algorithms.FixedWindow || cell == LongCell {
				want = 9
			}
			if f.Tail(9, true) != want || f.Tail(9, false) != 0 {
				t.Errorf("%+v: %d, not in need %d", f, f.Tail(9, true), f.Tail(9, false))
			}
		}
	}
}

// TestSplitAsk: first what the peer has of ours, then as much of its own as may be borrowed.
func TestSplitAsk(t *testing.T) {
	for _, c := range []struct {
		units, lent, borrowable, borrowed, pending, back,
		lend quantity.Units
	}{
		{10, 0, 100, 0, 0, 0, 10}, {10, 4, 100, 0, 0, 4, 6}, {10, 40, 100, 0, 0, 10, 0},
		{10, -3, 100, 0, 0, 0, 10}, {10, 0, 100, 95, 0, 0, 5}, {10, 0, 100, 105, 0, 0, 0},
		{10, 0, 100, 100, 8, 0, 8}, // the 8 of borrowed that are asked for again
	} {
		back, lend := SplitAsk(c.units, c.lent, c.borrowable, c.borrowed, c.pending)
		if back != c.back || lend != c.lend {
			t.Errorf("%+v: %d back and %d lent", c, back, lend)
		}
	}
	suite.Check(t, func(r *rapid.T) {
		units := rapid.Int64Range(0, 1<<51)
		n, lent, may := quantity.Units(units.Draw(r, "units")),
			quantity.Units(units.Draw(r, "lent")), quantity.Units(units.Draw(r, "borrowable"))
		borrowed := quantity.Units(rapid.Int64Range(0, int64(may)).Draw(r, "borrowed"))
		pending := quantity.Units(rapid.Int64Range(0, int64(borrowed)).Draw(r, "pending"))
		back, lend := SplitAsk(n, lent, may, borrowed, pending)
		if back < 0 || lend < 0 || back > lent || back+lend > n || borrowed-pending+lend > may {
			r.Fatalf("%d of %d back, %d lent", back, n, lend)
		}
		if back+lend < n && back < lent && borrowed-pending+lend < may {
			r.Fatalf("%d back and %d lent of %d, though there is more of both", back, lend, n)
		}
	})
}

func TestShortOfBurst(t *testing.T) {
	o := Outlook{Rate: 60_000, Ahead: 10 * Second, Steady: true, Stock: 5} // 60 a second
	for name, c := range map[string]struct {
		n    Need
		left int64
		want quantity.Units
	}{
		"beyond refill and tokens, within the horizon": {Need{Outlook: o, Share: 200}, 60 * Second,
			3*60 - 3*20 - 5},
		"until the cell ends":  {Need{Outlook: o, Share: 200}, Second, 60 - 20 - 5},
		"the refill is enough": {Need{Outlook: o, Share: 600}, Second, -5},
		"requests wait":        {Need{Outlook: o, Share: 200, Waiting: 90}, Second, 85},
		"at home: the next request": {Need{Outlook: o, Share: 200, Home: true, HomeWaits: 6},
			Second, 1},
	} {
		if got := c.n.ShortOfBurst(c.left); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestRunsOut(t *testing.T) {
	o := Outlook{Used: 90, Rate: 100_000, Ahead: Second} // a unit in 10 ms
	for share, want := range map[quantity.Units]bool{105: true, 106: false, 90: true} {
		if got := RunsOut(o, 80_000, share); got != want { // 16 units in two round trips
			t.Errorf("a share of %d: %t", share, got)
		}
	}
}
