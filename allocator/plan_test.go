//go:build !race

package allocator

import (
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"pgregory.net/rapid"
)

func sum(all []quantity.Units) (s quantity.Units) {
	for _, v := range all {
		s += v
	}
	return s
}

func TestEntitlements(t *testing.T) {
	for _, c := range []struct {
		limit    quantity.Units
		weights  []quantity.Units
		rotation uint64
		want     []quantity.Units
	}{
		{1000, []quantity.Units{40, 40, 20}, 0, []quantity.Units{400, 400, 200}},
		{1000, []quantity.Units{1, 1, 1}, 0, []quantity.Units{334, 333, 333}},
		{1000, []quantity.Units{1, 1, 1}, 1, []quantity.Units{333, 334, 333}},
		{1000, []quantity.Units{1, 1, 1}, 2, []quantity.Units{333, 333, 334}},
		{3, []quantity.Units{1, 1, 1, 1, 1}, 3, []quantity.Units{1, 0, 0, 1, 1}},
		{10, []quantity.Units{1, 0, 2}, 0, []quantity.Units{3, 0, 7}},
		{1, []quantity.Units{0, 5}, 9, []quantity.Units{0, 1}},
		{1 << 51, []quantity.Units{1_000_000, 1_000_000}, 0, []quantity.Units{1 << 50, 1 << 50}},
	} {
		if got := Entitlements(c.limit, c.weights, c.rotation); !slices.Equal(got, c.want) {
			t.Errorf("Entitlements(%d, %v, %d) = %v, want %v", c.limit, c.weights, c.rotation, got,
				c.want)
		}
	}
}

// drawUnits draws so many units.
func drawUnits(from, to int64) *rapid.Generator[quantity.Units] {
	return rapid.Map(rapid.Int64Range(from, to),
		func(n int64) quantity.Units { return quantity.Units(n) })
}

func TestEntitlementsAddUpAndAreProportional(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		limit := quantity.Units(rapid.Int64Range(0, 1<<51).Draw(t, "limit"))
		weights := rapid.SliceOfN(drawUnits(0, 1_000_000), 1, 64).Draw(t, "weights")
		if sum(weights) == 0 {
			weights[0] = 1
		}
		split := Entitlements(limit, weights, rapid.Uint64().Draw(t, "rotation"))
		if sum(split) != limit {
			t.Fatalf("%v adds up to %d, not %d", split, sum(split), limit)
		}
		for i, w := range weights {
			exact, _ := mulDiv(limit, int64(w), int64(sum(weights)))
			if split[i] < exact || split[i] > exact+1 || (w == 0 && split[i] != 0) {
				t.Fatalf("region %d of weight %d got %d, its exact part is %d", i, w, split[i],
					exact)
			}
		}
	})
}

// fillByUnits is the water-fill, done by handing out one unit at a time. Each unit goes to the
// region that has got the least so far of what it wants beyond its entitlement, in proportion to
// the entitlements.
func fillByUnits(demanders []Demander) []quantity.Units {
	target := make([]quantity.Units, len(demanders))
	var spare quantity.Units
	for i, c := range demanders {
		target[i] = min(c.Entitlement, c.Demand)
		spare += min(c.Entitlement-target[i], c.Lend)
	}
	extra := make([]quantity.Units, len(demanders))
	for ; spare > 0; spare-- {
		best := -1
		for i, c := range demanders {
			if extra[i] >= min(c.Demand-c.Entitlement, c.Borrow) {
				continue
			}
			if best < 0 || extra[i]*max(demanders[best].Entitlement,
				1) < extra[best]*max(c.Entitlement, 1) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		extra[best]++
	}
	for i := range target {
		target[i] += extra[i]
	}
	return target
}

func TestWaterFill(t *testing.T) {
	demander := func(f, demand quantity.Units) Demander {
		return Demander{Entitlement: f, Demand: demand, Borrow: 1000, Lend: f}
	}
	for _, c := range []struct {
		name      string
		demanders []Demander
		want      []quantity.Units
	}{
		{"everybody within the split", []Demander{demander(400, 380), demander(400, 380),
			demander(200, 180)}, []quantity.Units{380, 380, 180}},
		{"one borrows what others leave", []Demander{demander(400, 900), demander(400, 60),
			demander(200, 20)}, []quantity.Units{900, 60, 20}},
		{"all want more: the split", []Demander{demander(400, 700), demander(400, 700),
			demander(200, 350)}, []quantity.Units{400, 400, 200}},
		{"two borrow by weight", []Demander{demander(400, 900), demander(400, 0),
			demander(200, 900)}, []quantity.Units{667, 0, 333}},
		{"borrowing limit", []Demander{{400, 900, 100, 400}, demander(400, 60), demander(200, 20)},
			[]quantity.Units{500, 60, 20}},
		{"lending limit", []Demander{demander(400, 900), {400, 60, 1000, 10}, {200, 20, 1000, 0}},
			[]quantity.Units{410, 60, 20}},
		{"no entitlement", []Demander{demander(0, 5), demander(10, 2)}, []quantity.Units{5, 2}},
	} {
		if got := waterFill(c.demanders); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWaterFillEqualsHandingOutUnits(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		units := rapid.Int64Range(0, 300)
		demanders := make([]Demander, rapid.IntRange(1, 6).Draw(t, "regions"))
		var total quantity.Units
		for i := range demanders {
			c := Demander{Entitlement: quantity.Units(units.Draw(t, "entitlement")),
				Demand: quantity.Units(units.Draw(t, "demand")),
				Borrow: quantity.Units(units.Draw(t, "borrow"))}
			c.Lend = quantity.Units(rapid.Int64Range(0, int64(c.Entitlement)).Draw(t, "lend"))
			total += c.Entitlement
			demanders[i] = c
		}
		got, want := waterFill(demanders), fillByUnits(demanders)
		if sum(got) != sum(want) || sum(got) > total {
			t.Fatalf("%v: %v adds up to %d, unit by unit %v to %d", demanders, got, sum(got), want,
				sum(want))
		}
		for i := range got {
			if d := got[i] - want[i]; d < quantity.Units(-int64(len(demanders))) ||
				d > quantity.Units(len(demanders)) {
				t.Fatalf("%v: %v, unit by unit %v", demanders, got, want)
			}
		}
	})
}

func TestKept(t *testing.T) {
	const second = Second
	for _, c := range []struct {
		name     string
		o        Outlook
		f        quantity.Units
		grace    int64
		othersIn quantity.Units
		want     quantity.Units
	}{
		{"idle keeps nothing", Outlook{Ahead: second}, 400, 280_000, 0, 0},
		{"idle keeps a reserve for others", Outlook{Ahead: second}, 400, 280_000, 500, 20},
		{"its floor for the rest of the cell", Outlook{Used: 100, Rate: 60_000, Ahead: second / 2},
			400, 280_000, 0, 30},
		{"never beyond its entitlement", Outlook{Used: 100, Rate: 9_000_000, Ahead: second}, 400, 0,
			0, 300},
		{"borrowed rights: what it needs until it could ask again",
			Outlook{Used: 500, Rate: 1_000_000, Ahead: second}, 400, 200_000, 0, 200},
	} {
		if got := Kept(c.o, c.o.Used, c.f, c.grace, c.othersIn); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestShortAndMove(t *testing.T) {
	o := Outlook{Used: 0, Rate: 100_000, Ahead: 60 * Second} // 100 a second in a minute's cell
	if got := Short(o, 0, 6000, 100); got != 200 {
		t.Errorf("short of the horizon: %d, want 3 s of demand less the share, 200", got)
	}
	if got := Short(o, 0, 250, 100); got != 150 {
		t.Errorf("short of the target: %d, want 150", got)
	}
	if got := Short(o, 10*Second, 6000, 0); got != 0 {
		t.Errorf("a cell that opens after the horizon: %d, want 0", got)
	}
	for _, c := range []struct {
		short, quantum quantity.Units
		jitter         quantity.PPM
		inNeed         bool
		want           quantity.Units
	}{
		{100, 2, PPM, true, 100}, {100, 2, PPM, false, 50}, {100, 2, PPM * 12 / 10, false, 60},
		{100, 2, PPM * 8 / 10, false, 40},
		{3, 10, PPM, false, 3}, {15, 10, PPM, false, 10}, {1, 10, PPM, false, 1},
		{0, 1, PPM, true, 0},
	} {
		if got := Move(c.short, c.quantum, c.jitter, c.inNeed); got != c.want {
			t.Errorf("Move(%d, %d, %d, %t) = %d, want %d", c.short, c.quantum, c.jitter, c.inNeed,
				got, c.want)
		}
	}
}

func TestDivide(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		units := quantity.Units(rapid.Int64Range(0, 1000).Draw(t, "units"))
		inNeed := rapid.Bool().Draw(t, "in need")
		var total quantity.Units
		var offers []Offer
		for i := range rapid.IntRange(0, 8).Draw(t, "peers") {
			o := Offer{Peer: i, Back: quantity.Units(rapid.Int64Range(0, 100).Draw(t, "back")),
				Spare: quantity.Units(rapid.Int64Range(0, 200).Draw(t, "spare"))}
			total += o.Back + o.Spare
			offers = append(offers, o)
		}
		var asked quantity.Units
		for _, p := range divide(units, 0, offers,
			quantity.PPM(rapid.Int64Range(800_000, 1_200_000).Draw(t, "jitter")), inNeed) {
			has := offers[p.Peer].Back + offers[p.Peer].Spare
			if p.Units <= 0 || has == 0 || (!inNeed && p.Units > has) {
				t.Fatalf("peer %+v is asked for %d", offers[p.Peer], p.Units)
			}
			asked += p.Units
		}
		want := min(units, total)
		if inNeed && total > 0 {
			want = units
		}
		if asked != want {
			t.Fatalf("asked for %d, want %d: the peers have %d", asked, want, total)
		}
	})
}

func TestDemand(t *testing.T) {
	const tick = Second / 5
	var d Demand
	d.Sample(Requests{Admitted: 76}, tick)
	if d.Rate(Second) != 380_000 {
		t.Errorf("first sample: %d, want 380 a second", d.Rate(Second))
	}
	for range 4 {
		d.Sample(Requests{Admitted: 76}, tick)
	}
	d.Sample(Requests{Admitted: 180}, tick)
	if d.Rate(Second) != 900_000 {
		t.Errorf("a step up: %d, want 900 a second at once", d.Rate(Second))
	}
	d.Sample(Requests{Admitted: 12}, tick)
	d.Sample(Requests{Admitted: 12}, tick)
	if d.Rate(Second) != 60_000 {
		t.Errorf("two samples after a step down: %d, want 60 a second", d.Rate(Second))
	}
	d.Sample(Requests{Admitted: 10, Denied: 100_000}, tick)
	if d.Rate(Second) != 150_000 {
		t.Errorf("a storm of denials: %d, want them counted at twice what was admitted",
			d.Rate(Second))
	}
	if got := d.Latest(d.Rate(Second), Requests{Denied: 1_000_000}, tick); got != 200_000 {
		t.Errorf("a storm going on: %d, want twice what was counted before", got)
	}
	var rare Demand
	for second := range 20 { // one a second
		rare.Sample(Requests{Admitted: 1}, tick)
		for range 4 {
			rare.Sample(Requests{Admitted: 0}, tick)
		}
		if got := rare.Rate(60 * Second); got != 1_000 && second >= 5 {
			t.Fatalf("one unit a second: %d between two of them", got)
		}
	}
	for range demandReach {
		rare.Sample(Requests{Admitted: 0}, tick)
	}
	if short, long := rare.Rate(Second), rare.Rate(60*Second); short != 0 || long == 0 {
		t.Errorf("a second of silence after rare units: %d for cells of a second, %d for cells of a minute", short, long)
	}
	rare.Sample(Requests{Admitted: 2}, tick)
	if got := rare.Rate(Second); got > 2_000 {
		t.Errorf("two units in one sample: %d, taken for a rush", got)
	}
	if PerSecond(1, 0) != 0 || Over(500, Second) != 1 || Over(-1, Second) != 0 {
		t.Error("rates at the edges")
	}
}

func TestFadesIn(t *testing.T) {
	for name, c := range map[string]struct {
		o     Outlook
		units quantity.Units
		want  int64
	}{
		"as much comes as fades": {Outlook{Fading: 500, Ahead: Second, Rate: 500_000}, 2, 100_000},
		"more comes":             {Outlook{Fading: 400, Ahead: Second, Rate: 500_000}, 2, 100_000},
		"nothing comes":          {Outlook{Fading: 500, Ahead: Second}, 10, 20_000},
		"a half comes":           {Outlook{Fading: 500, Ahead: Second, Rate: 250_000}, 10, 40_000},
		"slowly":                 {Outlook{Fading: 5, Ahead: Second}, 10, 100_000},
		"nothing counts":         {Outlook{Ahead: Second}, 10, 100_000},
		"the end of a cell":      {Outlook{Fading: 5}, 10, 100_000},
		"the most there can be":  {Outlook{Fading: maxUnits, Ahead: 1}, maxUnits / 500, 100_000},
	} {
		if got := FadesIn(c.o, c.units, 100_000); got != c.want {
			t.Errorf("%s: in %d, want %d", name, got, c.want)
		}
	}
}
