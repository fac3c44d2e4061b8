package allocator

import (
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// LocalPart returns how many units of one bucket and window a node admits while it cannot use its
// region's store. The region keeps the part of its entitlement that it can never lend, and each of
// its nodes gets an equal part of that: floor((F - floor(l F)) / nodes). Where use fades over two
// windows (sliding) it is half of that, rounded down. nodes, at least 1, is how many nodes the
// region is configured with, not how many are alive. So all its nodes together admit no more than
// the region keeps, whatever it has lent.
func LocalPart(entitlement quantity.Units, lendingPPM quantity.PPM, nodes int64,
	sliding bool) quantity.Units {
	part := (entitlement - Part(entitlement, lendingPPM)) / quantity.Units(nodes)
	if sliding {
		part /= 2
	}
	return part
}

// ReservePart returns how many units of one bucket and window a node admits without its region's
// store, if the region keeps a reserve out of the store: units = floor(v F) of the limit and, for
// a bucket, burst = floor(v B) of its burst. Each node gets floor(units / nodes), and half of that
// where use fades over two windows (sliding).
//
// A bucket's nodes can admit the parts of two windows at once, around the end of the first. So in
// each window they admit at most half of burst. Whenever they admit, all nodes together then stay
// within a limit of that many units and that burst.
func ReservePart(units, burst quantity.Units, nodes int64, sliding, bucket bool) quantity.Units {
	switch {
	case sliding:
		units /= 2
	case bucket:
		units = min(units, burst/2)
	}
	return units / quantity.Units(nodes)
}

// OnFailure says what a node admits while it cannot use its region's store.
type OnFailure int

// What a node admits without the store.
const (
	FailLocal OnFailure = iota // LocalPart, or with a reserve ReservePart
	FailDeny                   // nothing
	FailAllow                  // everything
)

// Exposure is what the bounds of one limit are computed from: the limit in plain numbers, and the
// circumstances. Amounts are 0 to 2^51 units, times are microseconds.
type Exposure struct {
	Kind   algorithms.Kind
	Limit  quantity.Units // L, units in a window
	Window int64          // W, at least 1
	Cell   int64          // length of a cell, at least 1
	// Recovered: a store that lost the bucket restores it. Otherwise the bucket stays closed until
	// its old use no longer counts.
	Recovered bool
	Splits    []Split
	// Lending is l, the part of its entitlement that a region may lend, in parts per million.
	Lending quantity.PPM
	// Borrowing is the part of its entitlement that a region may borrow on top, in parts per
	// million. Negative: no bound.
	Borrowing quantity.PPM
	OnFailure OnFailure
	// Reserve is v, the part of its entitlement that each region keeps out of its store, in parts
	// per million. It matters with FailLocal only.
	Reserve quantity.PPM
	// MaxDebt is the most that a region may owe of a token bucket that is charged always. Of any other
	// limit it is 0.
	MaxDebt quantity.Units

	Nodes int64 // n, how many nodes each region is configured with, at least 1
	// Rate is r, the units a region admits in a second. 0: as many as the limit allows on average,
	// at least 1.
	Rate quantity.Units
	// units admitted or lent that a replica did not know when it was promoted
	Lag quantity.Units
	// TTL is the longest time to live of what Envoys are assigned, 0 if they are assigned nothing,
	// and EnvoyBurst is M, the most tokens that they hold together.
	TTL         int64
	EnvoyBurst  quantity.Units
	Clock       int64 // d, how far apart the clocks of two regions' stores are
	ClockMargin int64 // g, the difference up to which the sliding kinds are exact
}

// Bound is the most units that one mishap can admit above the limit.
type Bound struct {
	Cause string // the mishap, one word
	// which case of the mishap, and how often the bound counts; at most 40 bytes
	When    string
	Formula string // in the letters of Exposure and Holding; at most 44 bytes
	// by region, for the key with the largest bound; nil: for all regions together
	Regions []quantity.Units
	Most    quantity.Units // the largest of Regions, or for all regions together; 0 to MaxExcess
	None    bool           // there is no bound; the numbers mean nothing
}

// MaxExcess is the largest bound that is reported; a larger one is cut to it. Readers that hold
// numbers as doubles still read it exactly.
const MaxExcess = 1 << 53

// Holding is what a region is entitled to of one bucket, and the most it can come to hold. The
// store holds all of it except Reserve.
type Holding struct {
	Entitlement quantity.Units // F, less Reserve
	Reserve     quantity.Units // floor(v F), what the region keeps out of its store
	// floor(l F), the most of it that the region may lend; 0 for a lone region
	Lends quantity.Units
	// S_max, the most it may hold: F + what it may borrow of others; up to L
	Rights   quantity.Units
	Lent     quantity.Units // the most that others may lend it, whatever its own borrowing limit
	Burst    quantity.Units // B, its part of the burst, less the reserve of it
	MaxBurst quantity.Units // B_max = B + the most that others may lend it of their burst
}

// Holdings returns the holdings of each region. A region's part differs by key if the split leaves
// units over: each number is the largest for any key.
func (e Exposure) Holdings() []Holding {
	most := make([]Holding, len(e.Splits[0].Units))
	for _, s := range e.Splits {
		for i, h := range e.holdings(s) {
			m := &most[i]
			m.Entitlement, m.Reserve, m.Lends = max(m.Entitlement, h.Entitlement),
				max(m.Reserve, h.Reserve), max(m.Lends, h.Lends)
			m.Rights, m.Lent = max(m.Rights, h.Rights), max(m.Lent, h.Lent)
			m.Burst, m.MaxBurst = max(m.Burst, h.Burst), max(m.MaxBurst, h.MaxBurst)
		}
	}
	return most
}

// holdings returns the holdings of each region under one split.
func (e Exposure) holdings(s Split) []Holding {
	all := make([]Holding, len(s.Units))
	stored := s.Stored(e.Reserve)
	var lends, lendsBurst quantity.Units
	for i := range all {
		h := &all[i]
		h.Entitlement, h.Burst = stored.Units[i], stored.Burst[i]
		h.Reserve = s.Units[i] - stored.Units[i]
		if len(all) > 1 {
			h.Lends = Part(h.Entitlement, e.Lending)
		}
		lends += h.Lends
		lendsBurst += e.lendsBurst(*h)
	}
	for i := range all {
		h := &all[i]
		h.Lent = lends - h.Lends
		borrows := h.Lent
		if e.Borrowing >= 0 {
			borrows = min(borrows, Part(h.Entitlement, e.Borrowing))
		}
		h.Rights = min(h.Entitlement+borrows, e.Limit)
		h.MaxBurst = h.Burst + lendsBurst - e.lendsBurst(*h)
	}
	return all
}

// lendsBurst returns the most burst that a region may lend.
func (e Exposure) lendsBurst(h Holding) quantity.Units {
	if !e.Kind.Traits().LendsBurst {
		return 0
	}
	return Part(h.Burst, e.Lending)
}

// Bounds returns every kind of mishap that can admit more than the limit, each with the most it
// can admit, always in the same order. Each bound is for one mishap: the bounds of two at once may
// add up.
func Bounds(e Exposure) []Bound {
	return slices.Concat(e.storeLost(), e.debtLost(), e.staleReplica(), e.secondStore(), e.liveCopy(),
		e.keyDeleted(), e.local(), e.late(), e.clocksApart(), e.set())
}

// Owes returns bounds for each region of a limit that is charged always, if everybody asks first:
// owed is the most that the region owes at any time, and above is the most that is charged there above
// the ceiling each time it runs out. Both are what was in flight there when it last ran out: at most
// inFlight uses, each of at most cost units. A bucket owes no more than MaxDebt: what is above that is
// forgiven, but it was used.
func (e Exposure) Owes(inFlight int64, cost quantity.Units) (owed, above quantity.Units) {
	above, _ = mulDiv(cost, inFlight, 1)
	above = min(above, MaxExcess)
	if e.MaxDebt > 0 {
		return min(above, e.MaxDebt), above
	}
	return above, above
}

// each computes a bound for each region, for the key with the largest bound.
func (e Exposure) each(cause, when, formula string, of func(Holding) quantity.Units) Bound {
	b := Bound{Cause: cause, When: when, Formula: formula, Regions: make([]quantity.Units,
		len(e.Splits[0].Units))}
	for _, s := range e.Splits {
		for i, h := range e.holdings(s) {
			b.Regions[i] = max(b.Regions[i], min(of(h), MaxExcess))
		}
	}
	b.Most = slices.Max(b.Regions)
	return b
}

// together returns a bound for all regions together.
func together(cause, when, formula string, units quantity.Units) Bound {
	return Bound{Cause: cause, When: when, Formula: formula, Most: min(units, MaxExcess)}
}

// mulDivUp returns a*b/c rounded up, for a, b >= 0 and c > 0. A quotient beyond an int64 is cut to
// the largest int64.
func mulDivUp[T ~int64](a T, b, c int64) T {
	q, r := mulDiv(a, b, c)
	if r > 0 && q < maxInt64 {
		q++
	}
	return q
}
