//go:build !race

package algorithms

import (
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"pgregory.net/rapid"
)

const retryWindow = 1000 // microseconds

// drawnRegion is a region's store with one bucket, after a random history.
type drawnRegion struct {
	Twin
	terms    Terms
	part     quantity.PPM // of what it is asked
	now      quantity.StoreTime
	receipts []Settle
}

// drawBucket draws the terms of a bucket: cells as long as the window, shorter and longer, ticks
// that divide it or not.
func drawBucket(t *rapid.T, kind Kind) Terms {
	terms := Terms{Kind: kind, Window: retryWindow, Cell: retryWindow, Tick: 1,
		Entitlement: quantity.Units(rapid.SampledFrom([]int64{0, 1, 3, 10, 20}).Draw(t,
			"entitlement"))}
	switch {
	case kind == SlidingWindowCounter:
		terms.Tick = rapid.SampledFrom([]int64{1, 10, 300}).Draw(t, "tick")
	case kind == SlidingWindowLog:
		terms.Cell = rapid.SampledFrom([]int64{1000, 500, 334}).Draw(t, "cell length")
	case kind.Bucket():
		if terms.Entitlement > 0 { // who has no refill has no capacity
			terms.Burst = quantity.Units(rapid.SampledFrom([]int64{1, 5, 20}).Draw(t, "burst"))
		}
		terms.Cell = rapid.SampledFrom([]int64{1000, 400, 2000}).Draw(t, "cell length")
		terms.Tick = rapid.SampledFrom([]int64{1, 10, 200}).Draw(t, "tick")
	}
	if kind.Sliding() {
		terms.ClockMargin = rapid.SampledFrom([]int64{0, 0, 150, 2500}).Draw(t, "guard")
	}
	return terms
}

func drawRegion(t *rapid.T, kind Kind) *drawnRegion {
	r := &drawnRegion{terms: drawBucket(t, kind), part: Whole,
		now: quantity.StoreTime(rapid.Int64Range(1<<40, 1<<50).Draw(t, "now"))}
	r.Open(r.now, Open{Generation: 1, Epoch: "1-e", Lost: rapid.IntRange(0, 3).Draw(t, "lost") == 0,
		Seen: r.now.Add(rapid.Int64Range(-2*retryWindow, 2*retryWindow).Draw(t, "seen"))})
	for range rapid.IntRange(0, 14).Draw(t, "acts") {
		r.act(t)
	}
	return r
}

func (r *drawnRegion) guard() Fence { return Fence{Generation: 1, Epoch: "1-e", Clock: r.now} }

// asked reports whether a cost would be admitted at a time; it charges nothing.
func (r *drawnRegion) asked(at quantity.StoreTime, cost quantity.Units) (now quantity.StoreTime,
	a Answer) {
	r.now = at
	d := r.Decide(at, Decide{Fence: r.guard(), Costs: []quantity.Units{cost},
		Buckets: []LimitTarget{{Target: Target{Key: "k", Terms: r.terms}}}, Parts: []quantity.PPM{r.part}})
	return d.Now, d.Answers[0]
}

// act does one random thing, now and then under a document of a larger entitlement.
func (r *drawnRegion) act(t *rapid.T) {
	terms := r.terms
	if rapid.IntRange(0, 9).Draw(t, "policy changed") == 0 {
		terms.Entitlement += 2
	}
	units := func(what string) quantity.Units {
		return quantity.Units(rapid.Int64Range(0, 12).Draw(t, what))
	}
	cell := CellAt(max(r.now, r.mark), terms.Cell) + quantity.Cell(rapid.Int64Range(0, 1).Draw(t,
		"cell"))
	peer := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "peer")
	switch rapid.SampledFrom([]string{"decide", "decide", "decide", "lend", "credit", "credit",
		"wait", "wait", "refund", "reset"}).Draw(t, "act") {
	case "decide":
		r.decide(terms, rapid.SliceOfN(drawUnits(1, 6), 1, 6).Draw(t, "costs"))
	case "lend": // and give back
		r.Lend(r.now, Lend{Fence: r.guard(), Target: Target{Key: "k", Terms: terms},
			Debit: Debit{Peer: peer,
				Cell: cell, Lent: units("lent"), Returned: units("returned"),
				Kept: units("kept") / 4, Cap: terms.Entitlement, Burst: units("burst lent"),
				CapBurst: terms.Burst}})
	case "credit":
		r.Credit(r.now, Credit{Fence: r.guard(), Target: Target{Key: "k", Terms: terms},
			Announcement: Announcement{Peer: peer,
				PeerGeneration: 1, Cell: cell,
				Lent: units("borrowed"), Returned: units("regained") / 4, Most: 20,
				Burst: units("burst borrowed"), MostBurst: 20}})
	case "wait":
		r.now += quantity.StoreTime(rapid.Int64Range(0, 2*retryWindow).Draw(t, "wait"))
	case "refund":
		if len(r.receipts) > 0 {
			c := rapid.SampledFrom(r.receipts).Draw(t, "receipt")
			c.Fence = r.guard()
			r.Settle(r.now, c)
		}
	case "reset":
		if rapid.IntRange(0, 3).Draw(t, "rare") == 0 {
			r.Reset(r.now, Reset{Fence: r.guard(), Target: Target{Key: "k", Terms: terms}})
		}
	}
}

func (r *drawnRegion) decide(terms Terms, costs []quantity.Units) {
	d := r.Decide(r.now, Decide{Fence: r.guard(), Commit: true, Costs: costs,
		Buckets: []LimitTarget{{Target: Target{Key: "k", Terms: terms}}}})
	for i, a := range d.Answers {
		if a.Admitted {
			receipt := string(rune('A' + len(r.receipts)))
			r.receipts = append(r.receipts, Settle{Receipt: receipt, At: d.Now, Cost: costs[i],
				Charges: []Charge{{Target: Target{Key: "k", Terms: terms},
					Cell: d.Buckets[0].Cell}}})
		}
	}
}

// everAllowed returns the largest cost that the entitlement alone ever admits at once.
func everAllowed(t Terms) quantity.Units {
	if t.Kind.Bucket() && t.Entitlement > 0 {
		return t.Burst
	}
	return t.Entitlement
}

// drawUnits draws so many units.
func drawUnits(from, to int64) *rapid.Generator[quantity.Units] {
	return rapid.Map(rapid.Int64Range(from, to),
		func(n int64) quantity.Units { return quantity.Units(n) })
}

// sampled draws moments from..to, in order.
func sampled(t *rapid.T, from, to quantity.StoreTime) []quantity.StoreTime {
	moments := rapid.SliceOfN(rapid.Map(rapid.Int64Range(int64(from), int64(to)),
		func(n int64) quantity.StoreTime { return quantity.StoreTime(n) }), 20, 20).Draw(t,
		"moments")
	slices.Sort(moments)
	return moments
}

// TestRetryIsHonest: if nothing else happens, a denied cost is admitted at the moment named, which
// is the beginning of a tick, and not before. A cost that is denied for ever is more than the
// entitlement alone ever admits, and stays denied.
func TestRetryIsHonest(t *testing.T) {
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) {
			var denied, never int
			suite.Check(t, func(t *rapid.T) {
				r := drawRegion(t, kind)
				if kind != LeakyBucket {
					r.part = rapid.SampledFrom([]quantity.PPM{Whole, Whole, 600_000, 333_333, 50_000}).Draw(t, "part")
				}
				most := max(everAllowed(r.terms), 1)
				if rapid.IntRange(0, 3).Draw(t, "large") == 0 {
					most = 24
				}
				cost := quantity.Units(rapid.Int64Range(1, int64(most)).Draw(t, "cost"))
				clock := r.now
				now, a := r.asked(clock, cost)
				if a.Admitted {
					return
				}
				denied++
				retry := a.Verdicts[0].Retry
				if retry < 0 {
					never++
					r.staysDenied(t, now, cost)
					return
				}
				r.admittedFirst(t, now, clock.Add(retry), cost)
			})
			if denied == 0 || never == 0 || denied == never {
				t.Fatalf("%d denials, %d of them for ever: the test saw nothing", denied, never)
			}
			t.Logf("%d denials, %d of them for ever", denied, never)
		})
	}
}

// admittedFirst checks that a cost is admitted at a time, and not before.
func (r *drawnRegion) admittedFirst(t *rapid.T, now, at quantity.StoreTime, cost quantity.Units) {
	inCell := at
	if r.terms.Kind == SlidingWindowCounter { // its ticks begin with the cell
		inCell = quantity.StoreTime(int64(at) % r.terms.Cell)
	}
	if int64(inCell)%r.terms.Tick != 0 {
		t.Fatalf("retry in %d us, in the middle of a tick of %d us", at.Sub(now), r.terms.Tick)
	}
	if at <= now {
		t.Fatalf("denied, and a retry in %d us", at.Sub(now))
	}
	for _, early := range append(sampled(t, now, at-1), at-1) {
		if _, a := r.asked(early, cost); a.Admitted {
			t.Fatalf("admitted %d us before the retry time, %d us after the denial", at.Sub(early),
				early.Sub(now))
		}
	}
	if _, a := r.asked(at, cost); !a.Admitted {
		t.Fatalf("denied at the retry time, after %d us: %+v", at.Sub(now), a)
	}
}

// staysDenied checks that a cost is above what the entitlement alone ever admits, and is denied for
// a long time.
func (r *drawnRegion) staysDenied(t *rapid.T, now quantity.StoreTime, cost quantity.Units) {
	if most := Portion(everAllowed(r.terms), r.part); cost <= most {
		t.Fatalf("cost %d is denied for ever, although %+v admits %d at once", cost, r.terms, most)
	}
	for _, later := range sampled(t, now, now+30*retryWindow) {
		if _, a := r.asked(later, cost); a.Admitted {
			t.Fatalf("denied for ever, and admitted %d us later", later.Sub(now))
		}
	}
}
