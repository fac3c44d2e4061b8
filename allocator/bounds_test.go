//go:build !race

package allocator

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestLocalPart: what a node may admit without its region's store.
func TestLocalPart(t *testing.T) {
	for _, c := range []struct {
		entitlement quantity.Units
		lending     quantity.PPM
		nodes       int64
		sliding     bool
		want        quantity.Units
	}{
		{400, 950_000, 1, false, 20},
		{400, 950_000, 1, true, 10},
		{400, 950_000, 3, false, 6},
		{400, 950_000, 3, true, 3},
		{400, 950_000, 21, false, 0},
		{400, 0, 3, false, 133},
		{400, PPM, 1, false, 0}, // home mode: all may be lent
		{0, 950_000, 1, false, 0},
		{1, 950_000, 1, false, 1}, // less than a unit cannot be lent
		{1, 950_000, 1, true, 0},
		{1 << 51, 500_000, 1, false, 1 << 50},
	} {
		if got := LocalPart(c.entitlement, c.lending, c.nodes, c.sliding); got != c.want {
			t.Errorf("LocalPart(%d, %d, %d, %t) = %d, want %d", c.entitlement, c.lending, c.nodes,
				c.sliding, got, c.want)
		}
	}
}

// TestLocalPartsFitBesideWhatIsLent: if all nodes of a region are cut off, what they admit and what
// the region may have lent is together no more than its entitlement.
func TestLocalPartsFitBesideWhatIsLent(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		f := quantity.Units(rapid.Int64Range(0, 1<<51).Draw(t, "entitlement"))
		lending := quantity.PPM(rapid.Int64Range(0, PPM).Draw(t, "lending"))
		nodes := rapid.Int64Range(1, 10_000).Draw(t, "nodes")
		sliding := rapid.Bool().Draw(t, "sliding")
		part := LocalPart(f, lending, nodes, sliding)
		if part < 0 || part*quantity.Units(nodes)+Part(f, lending) > f {
			t.Fatalf("%d for each of %d nodes and %d lent, of %d", part, nodes, Part(f, lending), f)
		}
	})
}

const minute = 60 * Second

// exposed is a limit of 1000 a minute over regions of 40, 40 and 20, of which 95 % may be lent;
// buckets hold 100.
func exposed(change func(*Exposure)) Exposure {
	e := Exposure{Kind: algorithms.FixedWindow, Limit: 1000, Window: minute, Cell: minute,
		Lending: 950_000, Borrowing: -1,
		Nodes: 3, Lag: 7, Clock: 5 * Second, ClockMargin: Second / 10}
	if change != nil {
		change(&e)
	}
	burst := quantity.Units(0)
	if e.Kind.Bucket() {
		e.Cell, burst = Second, 100
	}
	e.Splits = []Split{SplitOf(e.Limit, burst, []quantity.Units{40, 40, 20}, 0, false)}
	return e
}

// figures are bounds as text scripts would have them: cause, and the most of each of its cases in
// order.
func figures(e Exposure) map[string][]quantity.Units {
	all := map[string][]quantity.Units{}
	for _, b := range Bounds(e) {
		most := b.Most
		if b.None {
			most = -1
		}
		all[b.Cause] = append(all[b.Cause], most)
	}
	return all
}

// TestBoundsOfEachAlgorithm: F is 400, 400, 200, S_max 970, 970, 960; of a burst of 100, B is 40,
// 40, 20 and B_max of a token bucket 97, 97, 96. A bound of -1 is none.
func TestBoundsOfEachAlgorithm(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Exposure)
		want   map[string][]quantity.Units
	}{
		"fixed_window": {nil, map[string][]quantity.Units{
			"store-lost": {0}, "stale-replica": {7, 970, 400, 970},
			"second-store": {0, 400, 970}, "key-deleted": {0, 970},
			"local":     {6, 18},
			"live-copy": {0, 17, 970}, "clocks-apart": {1000}, "clock-back": {0, 970}, "reset": {970},
			"policy-change": {0}, "fenced-alive": {970}}},
		"fixed_window of a day": {func(e *Exposure) {
			e.Window, e.Cell, e.Recovered = 1440*minute, 1440*minute, true
		}, map[string][]quantity.Units{
			"store-lost": {0, 0, 6, 970, 5}, "stale-replica": {7, 970, 400, 970},
			"second-store": {0, 400, 970}, "key-deleted": {0, 970},
			"local":     {6, 18},
			"live-copy": {0, 1, 970}, "clocks-apart": {1000}, "clock-back": {0, 970}, "reset": {970},
			"policy-change": {0}, "fenced-alive": {970}}},
		"sliding_window_counter": {func(e *Exposure) { e.Kind = algorithms.SlidingWindowCounter },
			map[string][]quantity.Units{
				"store-lost": {0}, "stale-replica": {7, 970, 400, 970},
				"second-store": {0, 400, 970}, "key-deleted": {0, 970},
				"local":     {3, 9},
				"live-copy": {0, 17, 970}, "clocks-apart": {63}, "clock-back": {0, 970}, "reset": {970},
				"policy-change": {0}, "fenced-alive": {970}}},
		"sliding_window_log": {func(e *Exposure) {
			e.Kind, e.Cell, e.Clock = algorithms.SlidingWindowLog, 6*Second, Second/10
		}, map[string][]quantity.Units{
			"store-lost": {0}, "stale-replica": {7, 970, 400, 970},
			"second-store": {0, 400, 970}, "key-deleted": {0, 970},
			"local":     {3, 9},
			"live-copy": {0, 17, 970}, "clocks-apart": {0}, "clock-back": {0, 970}, "reset": {970},
			"policy-change": {0}, "fenced-alive": {970}}},
		"token_bucket": {func(e *Exposure) { e.Kind = algorithms.TokenBucket },
			map[string][]quantity.Units{
				"store-lost": {0}, "stale-replica": {97, 400, 1000 + 100},
				"second-store": {0, 97, 400, 1000 + 100},
				"key-deleted":  {0, 97 + 32}, "local": {12, 36},
				"live-copy": {0, 17, 97 + 32}, "clocks-apart": {54}, "clock-back": {0, 97 + 81}, "reset": {97},
				"policy-change": {0}, "fenced-alive": {97 + 970}}},
		"token_bucket that is charged always": {func(e *Exposure) {
			e.Kind, e.MaxDebt = algorithms.TokenBucket, 5000
		}, map[string][]quantity.Units{
			"store-lost": {0, 5000}, "stale-replica": {97, 400, 1000 + 100},
			"second-store": {0, 97, 400, 1000 + 100},
			"key-deleted":  {0, 97 + 32}, "local": {12, 36},
			"live-copy": {0, 17, 97 + 32}, "clocks-apart": {54}, "clock-back": {0, 97 + 81}, "reset": {97},
			"policy-change": {0}, "fenced-alive": {97 + 970}}},
		"leaky_bucket": {func(e *Exposure) { e.Kind = algorithms.LeakyBucket },
			map[string][]quantity.Units{
				"store-lost": {0}, "stale-replica": {40, 400, 970},
				"second-store": {0, 40, 400, 970}, "key-deleted": {0, 40 + 32},
				"local":     {12, 36},
				"live-copy": {0, 17, 40 + 32}, "clocks-apart": {27}, "clock-back": {0, 40 + 81}, "reset": {40},
				"policy-change": {0}, "fenced-alive": {40 + 970}}},
		"leaky_bucket of a tenth of a second": {func(e *Exposure) {
			e.Kind, e.Window = algorithms.LeakyBucket, Second/10
		}, map[string][]quantity.Units{
			"store-lost": {0}, "stale-replica": {40, 4000, 9700},
			"second-store": {0, 40, 4000, 9700}, "key-deleted": {0, 40 + 19_000},
			"local":     {12, 36},
			"live-copy": {0, 970, 40 + 19_000}, "clocks-apart": {16_000}, "clock-back": {0, 40 + 48_500}, "reset": {40},
			"policy-change": {0}, "fenced-alive": {40 + 9700}}},
	} {
		t.Run(name, func(t *testing.T) { holds(t, figures(exposed(c.change)), c.want) })
	}
}

func holds(t *testing.T, got, want map[string][]quantity.Units) {
	t.Helper()
	for cause, figures := range want {
		if !slices.Equal(got[cause], figures) {
			t.Errorf("%s: %d, want %d", cause, got[cause], figures)
		}
	}
	for cause := range got {
		if _, known := want[cause]; !known {
			t.Errorf("%s: not expected", cause)
		}
	}
}

// TestBoundsOfCircumstances: circumstances that the document does not name, and how the limit is
// shared and protected, move the bounds that depend on them.
func TestBoundsOfCircumstances(t *testing.T) {
	long := func(e *Exposure) { e.Window, e.Cell, e.Recovered = 1440*minute, 1440*minute, true }
	for name, c := range map[string]struct {
		change func(*Exposure)
		cause  string
		want   []quantity.Units
	}{
		"a minute is short": {nil, "store-lost", []quantity.Units{0}},
		"more is long": {func(e *Exposure) {
			long(e)
			e.Rate = 1
		}, "store-lost", []quantity.Units{0, 0, 6, 970, 5}},
		"a bucket is short": {func(e *Exposure) {
			long(e)
			e.Kind, e.Recovered = algorithms.LeakyBucket, false
		}, "store-lost", []quantity.Units{0}},
		"more a second than a hundredth": {func(e *Exposure) {
			long(e)
			e.Rate = 55
		}, "store-lost", []quantity.Units{0, 0, 114, 970, 59}},
		"more a second than may be held": {func(e *Exposure) {
			long(e)
			e.Rate = 5000
		}, "store-lost", []quantity.Units{0, 0, 970, 970, 970}},
		"a limit's own rate": {func(e *Exposure) {
			long(e)
			e.Window = 100 * Second
		}, "store-lost", []quantity.Units{0, 0, 24, 970, 14}},
		"a hundredth is rounded up": {func(e *Exposure) {
			long(e)
			e.Limit = 1001
		}, "store-lost", []quantity.Units{0, 0, 7, 971, 6}},
		"no lag": {func(e *Exposure) { e.Lag = 0 }, "stale-replica",
			[]quantity.Units{0, 970, 400, 970}},
		"lag beyond what can be held": {func(e *Exposure) { e.Lag = 5000 }, "stale-replica",
			[]quantity.Units{970, 970, 400, 970}},
		"a borrowing limit": {func(e *Exposure) { e.Borrowing = 500_000 },
			"stale-replica", []quantity.Units{7, 600, 400, 600}},
		"nothing is lent": {func(e *Exposure) { e.Lending = 0 }, "stale-replica",
			[]quantity.Units{7, 400, 400, 400}},
		"what was given back comes again": {func(e *Exposure) { e.Borrowing = 0 }, "key-deleted",
			[]quantity.Units{0, 970}},
		"deny": {func(e *Exposure) { e.OnFailure = FailDeny }, "local",
			[]quantity.Units{0}},
		"allow": {func(e *Exposure) { e.OnFailure = FailAllow },
			"local", []quantity.Units{-1}},
		"one node": {func(e *Exposure) { e.Nodes = 1 }, "local",
			[]quantity.Units{20}},
		"a reserve": {func(e *Exposure) { e.Reserve = 100_000 }, "local",
			[]quantity.Units{0}},
		"a reserve under deny": {func(e *Exposure) {
			e.OnFailure, e.Reserve = FailDeny, 100_000
		}, "local", []quantity.Units{0}},
		"a store less a reserve": {func(e *Exposure) { e.Reserve = 100_000 },
			"stale-replica", []quantity.Units{7, 873, 360, 873}},
		"a queue less a reserve": {func(e *Exposure) {
			e.Kind, e.Reserve = algorithms.LeakyBucket, 100_000
		}, "stale-replica", []quantity.Units{36, 360, 873}},
		"all may be lent": {func(e *Exposure) { e.Lending = PPM }, "local",
			[]quantity.Units{0, 0}},
		"clocks within the margin": {func(e *Exposure) {
			e.Kind = algorithms.SlidingWindowCounter
			e.Clock = e.ClockMargin
		}, "clocks-apart", []quantity.Units{0}},
		"clocks beyond the margin": {func(e *Exposure) {
			e.Kind = algorithms.SlidingWindowCounter
			e.Clock = e.ClockMargin + 1
		}, "clocks-apart", []quantity.Units{1}},
		"clocks beyond the margin: log": {func(e *Exposure) {
			e.Kind = algorithms.SlidingWindowLog
			e.Clock = e.ClockMargin + 1
		}, "clocks-apart", []quantity.Units{760}},
		"clocks a window beyond the margin": {func(e *Exposure) {
			e.Kind = algorithms.SlidingWindowCounter
			e.Clock = e.ClockMargin + 2*minute
		}, "clocks-apart", []quantity.Units{760}},
		"clocks apart beyond the others": {func(e *Exposure) { e.Clock = 4 * minute },
			"clocks-apart", []quantity.Units{2 * 800}},
		"clocks two windows apart": {func(e *Exposure) { e.Clock = minute + 1 },
			"clocks-apart", []quantity.Units{2000}},
		"clocks together: fixed window": {func(e *Exposure) { e.Clock = 0 }, "clocks-apart",
			[]quantity.Units{0}},
		"clocks together: bucket": {func(e *Exposure) {
			e.Kind = algorithms.LeakyBucket
			e.Clock = 0
		}, "clocks-apart", []quantity.Units{0}},
		"clocks a microsecond apart: rate": {func(e *Exposure) {
			e.Kind = algorithms.LeakyBucket
			e.Clock = 1
		}, "clocks-apart", []quantity.Units{1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := figures(exposed(c.change))[c.cause]; !slices.Equal(got, c.want) {
				t.Errorf("%s: %d, want %d", c.cause, got, c.want)
			}
		})
	}
}

// TestBoundsByRegion: each region has its own number, for the key for which it is largest.
func TestBoundsByRegion(t *testing.T) {
	e := exposed(nil)
	e.Splits = []Split{{Units: []quantity.Units{334, 333, 333}, Burst: make([]quantity.Units, 3)},
		{Units: []quantity.Units{333, 334, 333}, Burst: make([]quantity.Units, 3)}}
	for _, b := range Bounds(e) {
		if b.Formula == "F" && !slices.Equal(b.Regions, []quantity.Units{334, 334, 333}) {
			t.Errorf("F by region: %d", b.Regions)
		}
		if b.Regions != nil && b.Most != slices.Max(b.Regions) {
			t.Errorf("%s, %s: most %d of %d", b.Cause, b.When, b.Most, b.Regions)
		}
	}
	// floor(l F) is 317 or 316 with 334 or 333 entitled.
	want := Holding{Entitlement: 334, Lends: 317, Rights: 334 + 316 + 316, Lent: 633}
	if got := e.Holdings()[0]; got != want {
		t.Errorf("holding %+v, want %+v", got, want)
	}
}

// TestDebtIsForgivenByRegion: each region's store may lose all that the region may owe.
func TestDebtIsForgivenByRegion(t *testing.T) {
	b := exposed(func(e *Exposure) { e.Kind, e.MaxDebt = algorithms.TokenBucket, 5000 }).debtLost()
	if len(b) != 1 || b[0].Formula != "max_debt, once" ||
		!slices.Equal(b[0].Regions, []quantity.Units{5000, 5000, 5000}) {
		t.Errorf("%+v", b)
	}
}

// TestOwes: what is in flight is owed, of a bucket at most its max_debt, and all of it is above the
// ceiling.
func TestOwes(t *testing.T) {
	for _, c := range []struct {
		inFlight            int64
		cost, maxDebt       quantity.Units
		wantOwed, wantAbove quantity.Units
	}{
		{8, 100, 0, 800, 800},
		{8, 100, 801, 800, 800},
		{8, 100, 500, 500, 800},
		{1, 1, 1, 1, 1},
		{1 << 51, 1 << 51, 0, MaxExcess, MaxExcess},
		{1 << 51, 1 << 51, 7, 7, MaxExcess},
		{4, 1 << 51, 0, MaxExcess, MaxExcess},
		{4, 1<<51 - 1, 0, MaxExcess - 4, MaxExcess - 4},
	} {
		owed, above := Exposure{MaxDebt: c.maxDebt}.Owes(c.inFlight, c.cost)
		if owed != c.wantOwed || above != c.wantAbove {
			t.Errorf("%+v: %d owed, %d above the ceiling", c, owed, above)
		}
	}
}

// TestHomeMode: the home region of a key holds all, may lend all, and admits nothing without its
// store.
func TestHomeMode(t *testing.T) {
	e := exposed(func(e *Exposure) { e.Limit, e.Lending = 3, PPM })
	e.Splits = nil
	for rotation := range uint64(3) {
		e.Splits = append(e.Splits, SplitOf(3, 0, []quantity.Units{40, 40, 20}, rotation, true))
	}
	holds(t, figures(e), map[string][]quantity.Units{"store-lost": {0},
		"stale-replica": {3, 3, 3, 3}, "second-store": {0, 3, 3}, "live-copy": {0, 1, 3}, "key-deleted": {0, 3}, "local": {0, 0},
		"clocks-apart": {3}, "clock-back": {0, 3}, "reset": {3}, "policy-change": {0}, "fenced-alive": {3}})
}

// TestLoneRegion has nobody to lend to, and one clock.
func TestLoneRegion(t *testing.T) {
	for _, change := range []func(*Exposure){nil, func(e *Exposure) { e.Kind = algorithms.SlidingWindowCounter }, func(e *Exposure) { e.Kind = algorithms.TokenBucket }} {
		e := exposed(change)
		e.Splits = []Split{SplitOf(e.Limit, 100, []quantity.Units{1}, 0, false)}
		if h := e.Holdings()[0]; h.Lends != 0 || h.Rights != e.Limit || h.MaxBurst != 100 {
			t.Errorf("holding %+v", h)
		}
		if got := figures(e)["clocks-apart"]; !slices.Equal(got, []quantity.Units{0}) {
			t.Errorf("clocks apart: %d", got)
		}
	}
}

// TestTwoRegionsFarApartDoNotTrade: with clocks two cells apart, neither region is in a cell of
// which the other may lend.
func TestTwoRegionsFarApartDoNotTrade(t *testing.T) {
	for name, change := range map[string]func(*Exposure){
		"fixed_window": nil, "counter": func(e *Exposure) { e.Kind = algorithms.SlidingWindowCounter }, "log": func(e *Exposure) { e.Kind = algorithms.SlidingWindowLog },
		"token_bucket": func(e *Exposure) { e.Kind = algorithms.TokenBucket }, "leaky_bucket": func(e *Exposure) { e.Kind = algorithms.LeakyBucket },
	} {
		e := exposed(change)
		e.Splits = []Split{SplitOf(e.Limit, 100, []quantity.Units{60, 40}, 0, false)}
		if e.Clock = 2*e.Cell - 1; figures(e)["clocks-apart"][0] == 0 {
			t.Errorf("%s: nothing is exceeded less than two cells apart", name)
		}
		if e.Clock++; figures(e)["clocks-apart"][0] != 0 {
			t.Errorf("%s: %d is exceeded two cells apart", name, figures(e)["clocks-apart"])
		}
	}
}

// TestBoundsAreNumbers: whatever the limit and the circumstances, every number is 0 to MaxExcess,
// what a region holds is within the limit, and every text within its column.
func TestBoundsAreNumbers(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		e := anyExposure(t)
		for i, h := range e.Holdings() {
			if h.Lends < 0 || h.Lends > h.Entitlement || h.Rights < h.Entitlement || h.Rights > e.Limit || h.MaxBurst < h.Burst {
				t.Fatalf("region %d: %+v", i, h)
			}
		}
		for _, b := range Bounds(e) {
			for _, units := range append([]quantity.Units{b.Most}, b.Regions...) {
				if units < 0 || units > MaxExcess {
					t.Fatalf("%s, %s: %d", b.Cause, b.When, units)
				}
			}
			if len(b.When) > 40 || len(b.Formula) > 44 {
				t.Fatalf("%q (%d) or %q (%d) is too long for its column", b.When, len(b.When), b.Formula, len(b.Formula))
			}
		}
	})
}

func anyExposure(t *rapid.T) Exposure {
	units := rapid.OneOf(rapid.Int64Range(1, 1<<51), rapid.Int64Range(1, 100))
	e := Exposure{
		Kind:        rapid.SampledFrom(algorithms.Kinds).Draw(t, "kind"),
		Limit:       quantity.Units(units.Draw(t, "limit")),
		Window:      rapid.Int64Range(1, 366*1440*minute).Draw(t, "window"),
		Recovered:   rapid.Bool().Draw(t, "recovered"),
		Lending:     quantity.PPM(rapid.Int64Range(0, PPM).Draw(t, "lending")),
		Borrowing:   quantity.PPM(rapid.Int64Range(-1, PPM*PPM).Draw(t, "borrowing")),
		OnFailure:   rapid.SampledFrom([]OnFailure{FailLocal, FailDeny, FailAllow}).Draw(t, "on failure"),
		Reserve:     quantity.PPM(rapid.Int64Range(0, PPM).Draw(t, "reserve")),
		Nodes:       rapid.Int64Range(1, 10_000).Draw(t, "nodes"),
		Rate:        quantity.Units(rapid.Int64Range(0, 1<<51).Draw(t, "rate")),
		Lag:         quantity.Units(rapid.Int64Range(0, 1<<51).Draw(t, "lag")),
		Clock:       rapid.Int64Range(0, 1<<51).Draw(t, "clock"),
		ClockMargin: rapid.Int64Range(0, Second).Draw(t, "clock margin"),
		MaxDebt:     quantity.Units(rapid.Int64Range(0, 1<<51).Draw(t, "max debt")),
	}
	e.Cell = e.Window
	burst := quantity.Units(0)
	if e.Kind.Bucket() {
		e.Cell, burst = Second, quantity.Units(units.Draw(t, "burst"))
	}
	weights := rapid.SliceOfN(drawUnits(1, 1_000_000), 1, 64).Draw(t, "weights")
	home := rapid.Bool().Draw(t, "home")
	if home {
		e.Lending, e.Borrowing, e.Reserve = PPM, -1, 0
	}
	for rotation := range uint64(min(len(weights), 3)) {
		e.Splits = append(e.Splits, SplitOf(e.Limit, burst, weights, rotation, home))
	}
	return e
}

// TestMulDivUp holds it against arithmetic without bounds.
func TestMulDivUp(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int64Range(0, maxInt64), rapid.Int64Range(0, 1000))
		a, b, c := number.Draw(t, "a"), number.Draw(t, "b"), number.Draw(t, "c")
		c = max(c, 1)
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want.Add(want, big.NewInt(c-1)).Div(want, big.NewInt(c))
		if largest := big.NewInt(maxInt64); want.Cmp(largest) > 0 {
			want = largest
		}
		if got := mulDivUp(a, b, c); got != want.Int64() {
			t.Fatalf("mulDivUp(%d, %d, %d) = %d, want %d", a, b, c, got, want)
		}
	})
}
