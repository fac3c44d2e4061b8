package allocator

import (
	"slices"

	"github.com/quotad/quotad/algorithms"
)

// LocalPart returns how many units of one bucket and window a node admits while it cannot use its
// region's store. The region keeps the part of its entitlement that it can never lend, and each of
// its nodes gets an equal part of that: floor((F - floor(l F)) / nodes). Where use fades over two
// windows (sliding) it is half of that, rounded down. nodes, at least 1, is how many nodes the
// region is configured with, not how many are alive. So all its nodes together admit no more than
// the region keeps, whatever it has lent.
func LocalPart(entitlement, lendingPPM, nodes int64, sliding bool) int64 {
	part := (entitlement - Part(entitlement, lendingPPM)) / nodes
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
func ReservePart(units, burst, nodes int64, sliding, bucket bool) int64 {
	switch {
	case sliding:
		units /= 2
	case bucket:
		units = min(units, burst/2)
	}
	return units / nodes
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
	Kind      algorithms.Kind
	Limit     int64 // L, units in a window
	Window    int64 // W, at least 1
	Cell      int64 // length of a cell, at least 1
	Recovered bool  // what a store loses of it is restored; else the cells that it concerns are closed
	Splits    []Split
	Lending   int64 // l, the part of its entitlement that a region may lend, parts per million
	Borrowing int64 // the part of it that a region may borrow on top, parts per million; below 0: no bound
	OnFailure OnFailure
	Reserve   int64 // v, the part of its entitlement that each region keeps out of its store, parts per million; FailLocal alone

	Nodes       int64 // n, of each region by configuration, at least 1
	Rate        int64 // r, the units a region admits in a second; 0: as many as the limit has, at least 1
	Lag         int64 // units admitted or lent that a replica had not heard of when it was promoted
	Clock       int64 // d, how far the clocks of two regions' stores are apart
	ClockMargin int64 // the difference up to which the sliding kinds are exact
}

// Bound is the most units that one mishap can admit above the limit.
type Bound struct {
	Cause   string  // the mishap, one word
	When    string  // which case of it, and how often that counts; at most 40 bytes
	Formula string  // in the letters of Exposure and Holding; at most 44 bytes
	Regions []int64 // by region, for the key with most; nil where it is about all regions together
	Most    int64   // the most of Regions, or of all regions together; 0 to MaxExcess
	None    bool    // there is no bound; the numbers then say nothing
}

// MaxExcess is the largest bound that is reported; a larger one is cut to it. Readers that hold
// numbers as doubles still read it exactly.
const MaxExcess = 1 << 53

// Holding is what a region is entitled to of one bucket, and the most it can come to hold. The
// store holds all of it except Reserve.
type Holding struct {
	Entitlement int64 // F, less Reserve
	Reserve     int64 // floor(v F), what the region keeps out of its store
	Lends       int64 // floor(l F), the most of it that the region may lend; 0 for a lone region
	Rights      int64 // S_max, the most it may hold: F + what others may lend and it may borrow, at most L
	Lent        int64 // the most others may lend it, whatever it may borrow
	Burst       int64 // B, its part of the burst, less the reserve of it
	MaxBurst    int64 // B_max = B + the most others may lend it of theirs
}

// Holdings returns the holdings of each region. The regions' parts differ by key, where units are
// left over from the split: each number is the largest for any key.
func (e Exposure) Holdings() []Holding {
	most := make([]Holding, len(e.Splits[0].Units))
	for _, s := range e.Splits {
		for i, h := range e.holdings(s) {
			m := &most[i]
			m.Entitlement, m.Reserve, m.Lends = max(m.Entitlement, h.Entitlement), max(m.Reserve, h.Reserve), max(m.Lends, h.Lends)
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
	var lends, lendsBurst int64
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
func (e Exposure) lendsBurst(h Holding) int64 {
	if !e.Kind.Traits().LendsBurst {
		return 0
	}
	return Part(h.Burst, e.Lending)
}

// Bounds returns every kind of mishap that can admit more than the limit, each with the most it
// can admit, always in the same order. Each bound is for one mishap: the bounds of two at once may
// add up.
func Bounds(e Exposure) []Bound {
	return slices.Concat(e.storeLost(), e.staleReplica(), e.liveCopy(), e.keyDeleted(), e.local(), e.clocksApart(), e.set())
}

// each computes a bound region by region, for the key with most.
func (e Exposure) each(cause, when, formula string, of func(Holding) int64) Bound {
	b := Bound{Cause: cause, When: when, Formula: formula, Regions: make([]int64, len(e.Splits[0].Units))}
	for _, s := range e.Splits {
		for i, h := range e.holdings(s) {
			b.Regions[i] = max(b.Regions[i], min(of(h), MaxExcess))
		}
	}
	b.Most = slices.Max(b.Regions)
	return b
}

// together is a bound on all regions together.
func together(cause, when, formula string, units int64) Bound {
	return Bound{Cause: cause, When: when, Formula: formula, Most: min(units, MaxExcess)}
}

// storeLost: a store that comes back without its data. What it concerns is closed, or else used is restored from what the
// nodes saw last and from checkpoints, which lag by a hundredth of the entitlement and a second. Until all nodes told, as
// much counts as used as any region can have had.
func (e Exposure) storeLost() []Bound {
	const cause = "store-lost"
	if !e.Recovered {
		return []Bound{together(cause, "any loss", "0: the cells it concerns are closed", 0)}
	}
	return []Bound{
		together(cause, "the nodes that decided still run", "used - restored: 0, but answers in flight", 0),
		together(cause, "one of them is not heard", "0: until it is, all counts as used", 0),
		e.each(cause, "they ended, too, and are back", "min(ceil(F / 100) + r, S_max)", func(h Holding) int64 {
			return min(mulDivUp(h.Entitlement, 1, 100)+e.rate(), h.Rights)
		}),
	}
}

func (e Exposure) rate() int64 {
	if e.Rate > 0 {
		return e.Rate
	}
	return max(mulDivUp(e.Limit, Second, e.Window), 1)
}

// staleReplica: two primaries serve one region, each a share of its own. A replica cannot lag behind by more than was
// used and lent, so the share bounds the cell of the fork, too.
func (e Exposure) staleReplica() []Bound {
	const cause = "stale-replica"
	if e.Kind.Bucket() {
		span, each := e.span()
		b := []Bound{
			e.each(cause, "once, when it forks", "B - level + lag, at most B_max", mostBurst),
			e.each(cause, each+", nothing borrowed", "F x time", func(h Holding) int64 { return mulDivUp(h.Entitlement, span, e.Window) }),
		}
		if e.Kind.Traits().LendsBurst { // others lend tokens again and again, but none that the limit does not refill
			all := min(mulDivUp(e.Limit, span, e.Window), MaxExcess) + e.burst()
			return append(b, e.each(cause, each+" while both serve", "L x time + burst of all regions", func(Holding) int64 { return all }))
		}
		return append(b, e.each(cause, each+" while both serve", "S_max x time", func(h Holding) int64 { return mulDivUp(h.Rights, span, e.Window) }))
	}
	return []Bound{
		e.each(cause, "the window of the fork, S used up", "min(lag, S_max)", func(h Holding) int64 { return min(e.Lag, h.Rights) }),
		e.each(cause, "the window of the fork", "S - used + lag, at most S_max", mostRights),
		e.each(cause, "each later window, nothing borrowed", "F", func(h Holding) int64 { return h.Entitlement }),
		e.each(cause, "each later window while both serve", "S_max", mostRights),
	}
}

func mostRights(h Holding) int64 { return h.Rights }
func mostBurst(h Holding) int64  { return h.MaxBurst }

// span returns the time for which what a bucket admits is stated: a window, but not less than a cell.
func (e Exposure) span() (length int64, each string) {
	if e.Window < e.Cell {
		return e.Cell, "each cell"
	}
	return e.Window, "each window"
}

// liveCopy: an older copy of a store is put back while it runs, with the identity of the store. Each node knows the latest
// time that it had from the store, at most a second ago, and takes an older one for a loss.
func (e Exposure) liveCopy() []Bound {
	const cause = "live-copy"
	b := []Bound{together(cause, "a node that had a later time from it", "0: it is noticed, and a loss", 0)}
	if e.Nodes == 1 {
		return b
	}
	return append(b, e.each(cause, "another node, until that one notices", "r for a second, at most S_max", func(h Holding) int64 {
		return min(e.rate(), max(h.Rights, h.MaxBurst))
	}))
}

// keyDeleted: the hash of one bucket vanishes. What it had used and lent, and rights it had given back and may be
// credited with again, were within what it and others may hold. A bucket begins full, and its rows of two cells are gone.
func (e Exposure) keyDeleted() []Bound {
	const cause, unseen = "key-deleted", "that node has no note of it"
	b := []Bound{together(cause, "the node asked first had used it then", "0: it is noticed, and closed or recovered", 0)}
	if e.Kind.Bucket() {
		return append(b, e.each(cause, unseen, "B_max + sum of l F x 2 cells / W", func(h Holding) int64 {
			return h.MaxBurst + min(mulDivUp(h.Lends+h.Lent, 2*e.Cell, e.Window), MaxExcess)
		}))
	}
	return append(b, e.each(cause, unseen, "used + lent, at most F + others' l F", func(h Holding) int64 {
		return min(h.Entitlement+h.Lent, e.Limit)
	}))
}

// local: nodes that cannot reach the store decide without it, while others still spend through it.
func (e Exposure) local() []Bound {
	const cause = "local"
	switch e.OnFailure {
	case FailDeny:
		return []Bound{together(cause, "any node cut off from its store", "0: on_store_failure is deny", 0)}
	case FailAllow:
		return []Bound{{Cause: cause, When: "any node cut off from its store", Formula: "none: on_store_failure is allow", None: true}}
	}
	if e.Reserve > 0 {
		return []Bound{together(cause, "any nodes cut off from their store", "0: they spend floor(v F), kept out of it", 0)}
	}
	formula := "floor((F - floor(l F)) / n)"
	if e.Kind.Sliding() {
		formula = "floor(floor((F - floor(l F)) / n) / 2)"
	}
	windows, twice, each := int64(1), "", "one node cut off, each window"
	if e.Kind.Bucket() { // what may be admitted in two windows may be admitted at once, around the end of the first
		windows, twice, each = 2, "2 ", "one node cut off, each two windows"
	}
	cutOff := func(nodes int64) func(Holding) int64 {
		return func(h Holding) int64 {
			return windows * nodes * LocalPart(h.Entitlement, e.Lending, e.Nodes, e.Kind.Sliding())
		}
	}
	b := []Bound{e.each(cause, each, twice+formula, cutOff(1))}
	if e.Nodes > 1 {
		b = append(b, e.each(cause, "k of n nodes cut off, here all of them", twice+"k "+formula, cutOff(e.Nodes)))
	}
	return b
}

// clocksApart: the stores' clocks differ, or one steps back. Labels are exact under any clock; this is about real time.
// Regions trade only rights of cells that both are in or next to, so not if their clocks are two cells apart; and what
// the region furthest behind lends does no harm, for its own clock makes it wait longer than the borrower's use weighs.
func (e Exposure) clocksApart() []Bound {
	const cause = "clocks-apart"
	back := together("clock-back", "over the end of a cell", "0: the store's time never goes back", 0)
	regions := int64(len(e.Splits[0].Units))
	switch {
	case regions == 1:
		return []Bound{together(cause, "by d, in real time", "0: one region has one clock", 0), back}
	case regions == 2 && e.Clock >= 2*e.Cell && (e.Kind.Sliding() || e.Kind.Bucket()):
		return []Bound{together(cause, "by d, in real time", "0: two cells apart they do not trade", 0), back}
	case e.Kind.Traits().LendsBurst:
		return []Bound{together(cause, "by d, in real time, once", "ceil(2 min(d, 2 cells) (L - least F) / W)",
			mulDivUp(e.ahead(entitled), 2*e.near(), e.Window)), back}
	case e.Kind.Bucket():
		return []Bound{together(cause, "by d, in real time, once", "ceil(min(d, 2 cells) (L - least F) / W)",
			mulDivUp(e.ahead(entitled), e.near(), e.Window)), back}
	case e.Kind.Sliding():
		return []Bound{e.fadesApart(cause), back}
	}
	return []Bound{e.windowsApart(cause, regions), back}
}

// near returns by how much the clocks of regions that trade can differ at most.
func (e Exposure) near() int64 { return min(e.Clock, 2*e.Cell) }

// windowsApart: an interval sees parts of two windows of each region, and of all regions together those of as many more
// as their clocks are apart. Where clocks are further apart than neighbours can bridge, one region at least trades with
// nobody.
func (e Exposure) windowsApart(cause string, regions int64) Bound {
	const when = "by d, in any interval T of real time"
	if 2*(regions-1) <= e.Clock/e.Window {
		more, _ := mulDiv(e.ahead(entitled), 2*(regions-2), 1)
		return together(cause, when, "2 (regions - 2) (L - least F); here T = W", more)
	}
	more, _ := mulDiv(mulDivUp(e.Clock, 1, e.Window), e.Limit, 1)
	return together(cause, when, "(ceil((T+d)/W)+1) L, less 2 L; here T = W", more)
}

// fadesApart: what was lent counts here for less already, and there still for more. The log counts an entry whole or not
// at all.
func (e Exposure) fadesApart(cause string) Bound {
	const when = "by d, in any interval W of real time"
	lent, beyond := e.ahead(func(h Holding) int64 { return h.Lends }), max(e.Clock-e.ClockMargin, 0)
	if e.Kind.Traits().WholeEntries {
		if beyond == 0 {
			lent = 0
		}
		return together(cause, when, "d<=margin: 0, else sum of l F but the least", lent)
	}
	return together(cause, when, "sum of l F but the least x (d - margin) / W", mulDivUp(lent, min(beyond, e.Window), e.Window))
}

func entitled(h Holding) int64 { return h.Entitlement }

// ahead returns the most that something comes to over all regions but the one with least, which may be the one furthest
// behind.
func (e Exposure) ahead(of func(Holding) int64) (most int64) {
	for _, s := range e.Splits {
		sum, least := int64(0), int64(maxInt64)
		for _, h := range e.holdings(s) {
			sum += of(h)
			least = min(least, of(h))
		}
		most = max(most, sum-least)
	}
	return most
}

// set: what operators do on purpose.
func (e Exposure) set() []Bound {
	const reset, change = "reset", "policy-change"
	const each, both = "each time, in its window", "each window under two documents"
	if e.Kind.Bucket() {
		return []Bound{e.each(reset, each, "B_max", mostBurst), together(change, both, "L + burst, as the old document has them", e.Limit+e.burst())}
	}
	return []Bound{e.each(reset, each, "S_max", mostRights), together(change, both, "L, as the old document has it", e.Limit)}
}

// burst returns the burst of all regions together.
func (e Exposure) burst() (sum int64) {
	for _, b := range e.Splits[0].Burst {
		sum += b
	}
	return sum
}

// mulDivUp returns a*b/c rounded up; a, b >= 0, c > 0. A quotient beyond an int64 is cut to the largest.
func mulDivUp(a, b, c int64) int64 {
	q, r := mulDiv(a, b, c)
	if r > 0 && q < maxInt64 {
		q++
	}
	return q
}
