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

	Nodes int64 // n, how many nodes each region is configured with, at least 1
	// Rate is r, the units a region admits in a second. 0: as many as the limit allows on average,
	// at least 1.
	Rate quantity.Units
	// units admitted or lent that a replica did not know when it was promoted
	Lag         quantity.Units
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
	return slices.Concat(e.storeLost(), e.staleReplica(), e.liveCopy(), e.keyDeleted(), e.local(),
		e.clocksApart(), e.set())
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

// storeLost returns the bounds for a store that comes back without its data. A bucket that is not
// recovered is closed. The use of a recovered one is restored from what the nodes saw last and from
// checkpoints, which lag by at most a hundredth of the entitlement and a second. Until all nodes
// have told, as many units count as used as any region can have had.
func (e Exposure) storeLost() []Bound {
	const cause = "store-lost"
	if !e.Recovered {
		return []Bound{together(cause, "any loss", "0: the cells it concerns are closed", 0)}
	}
	return []Bound{
		together(cause, "the nodes that decided still run",
			"used - restored: 0, but answers in flight", 0),
		together(cause, "one of them is not heard", "0: until then all counts as used", 0),
		e.each(cause, "they ended, too, and are back", "min(ceil(F / 100) + r, S_max)",
			func(h Holding) quantity.Units {
				return min(mulDivUp(h.Entitlement, 1, 100)+e.rate(), h.Rights)
			}),
	}
}

// rate returns Rate, or in its place the units that the limit allows in a second on average, at
// least 1.
func (e Exposure) rate() quantity.Units {
	if e.Rate > 0 {
		return e.Rate
	}
	return max(mulDivUp(e.Limit, Second, e.Window), 1)
}

// staleReplica returns the bounds for two primaries that serve one region at the same time, each
// with the region's whole share. A replica cannot lag by more than was used and lent, so the share
// also bounds the cell of the fork.
func (e Exposure) staleReplica() []Bound {
	const cause = "stale-replica"
	if e.Kind.Bucket() {
		span, each := e.span()
		b := []Bound{
			e.each(cause, "once, when it forks", "B - level + lag, at most B_max", mostBurst),
			e.each(cause, each+", nothing borrowed", "F x time",
				func(h Holding) quantity.Units { return mulDivUp(h.Entitlement, span, e.Window) }),
		}
		// Others lend tokens again and again, but no more than the limit refills.
		if e.Kind.Traits().LendsBurst {
			all := min(mulDivUp(e.Limit, span, e.Window), MaxExcess) + e.burst()
			return append(b, e.each(cause, each+" while both serve",
				"L x time + burst of all regions", func(Holding) quantity.Units { return all }))
		}
		return append(b, e.each(cause, each+" while both serve", "S_max x time",
			func(h Holding) quantity.Units { return mulDivUp(h.Rights, span, e.Window) }))
	}
	return []Bound{
		e.each(cause, "the window of the fork, S used up", "min(lag, S_max)",
			func(h Holding) quantity.Units { return min(e.Lag, h.Rights) }),
		e.each(cause, "the window of the fork", "S - used + lag, at most S_max", mostRights),
		e.each(cause, "each later window, nothing borrowed", "F",
			func(h Holding) quantity.Units { return h.Entitlement }),
		e.each(cause, "each later window while both serve", "S_max", mostRights),
	}
}

func mostRights(h Holding) quantity.Units { return h.Rights }
func mostBurst(h Holding) quantity.Units  { return h.MaxBurst }

// span returns the length of time for which the bounds of a bucket are stated, in microseconds, and
// its name: a window, or a cell if that is longer.
func (e Exposure) span() (length int64, each string) {
	if e.Window < e.Cell {
		return e.Cell, "each cell"
	}
	return e.Window, "each window"
}

// liveCopy returns the bounds for a running store that is replaced by an older copy with the same
// identity. Each node knows the latest store time that it saw, at most a second ago. It takes an
// older time for a loss of the store.
func (e Exposure) liveCopy() []Bound {
	const cause = "live-copy"
	b := []Bound{together(cause, "a node that had a later time from it",
		"0: it is noticed, and a loss", 0)}
	if e.Nodes == 1 {
		return b
	}
	return append(b, e.each(cause, "another node, until that one notices",
		"r for a second, at most S_max", func(h Holding) quantity.Units {
			return min(e.rate(), max(h.Rights, h.MaxBurst))
		}))
}

// keyDeleted returns the bounds for the deletion of one bucket's hash from the store. What the
// bucket had used and lent is forgotten, and rights that it gave back may be credited to it again.
// All of that together was within what this region and others may hold. A token or leaky bucket
// starts full again, and its rows of two cells are gone.
func (e Exposure) keyDeleted() []Bound {
	const cause, unseen = "key-deleted", "that node has no note of it"
	b := []Bound{together(cause, "the node asked first had used it then",
		"0: it is noticed, and closed or recovered", 0)}
	if e.Kind.Bucket() {
		return append(b, e.each(cause, unseen, "B_max + sum of l F x 2 cells / W",
			func(h Holding) quantity.Units {
				return h.MaxBurst + min(mulDivUp(h.Lends+h.Lent, 2*e.Cell, e.Window), MaxExcess)
			}))
	}
	return append(b, e.each(cause, unseen, "used + lent, at most F + others' l F",
		func(h Holding) quantity.Units {
			return min(h.Entitlement+h.Lent, e.Limit)
		}))
}

// local returns the bounds for nodes that cannot reach the store and decide without it, while other
// nodes still spend through it.
func (e Exposure) local() []Bound {
	const cause = "local"
	switch e.OnFailure {
	case FailDeny:
		return []Bound{together(cause, "any node cut off from its store",
			"0: on_store_failure is deny", 0)}
	case FailAllow:
		return []Bound{{Cause: cause, When: "any node cut off from its store",
			Formula: "none: on_store_failure is allow", None: true}}
	}
	if e.Reserve > 0 {
		return []Bound{together(cause, "any nodes cut off from their store",
			"0: they spend floor(v F), kept out of it", 0)}
	}
	formula := "floor((F - floor(l F)) / n)"
	if e.Kind.Sliding() {
		formula = "floor(floor((F - floor(l F)) / n) / 2)"
	}
	windows, twice, each := int64(1), "", "one node cut off, each window"
	// The parts of two windows may be admitted at once, around the end of the first.
	if e.Kind.Bucket() {
		windows, twice, each = 2, "2 ", "one node cut off, each two windows"
	}
	cutOff := func(nodes int64) func(Holding) quantity.Units {
		return func(h Holding) quantity.Units {
			return quantity.Units(windows*nodes) * LocalPart(h.Entitlement, e.Lending, e.Nodes,
				e.Kind.Sliding())
		}
	}
	b := []Bound{e.each(cause, each, twice+formula, cutOff(1))}
	if e.Nodes > 1 {
		b = append(b, e.each(cause, "k of n nodes cut off, here all of them", twice+"k "+formula,
			cutOff(e.Nodes)))
	}
	return b
}

// clocksApart returns the bounds for store clocks that differ, or that step back. Labelled windows
// are exact under any clock; these bounds are about real time. Two regions trade only rights of
// cells that both are in or next to, so they do not trade if their clocks are two cells apart. What
// the region furthest behind lends does no harm: by its own clock it waits for longer than the
// borrower's use weighs.
func (e Exposure) clocksApart() []Bound {
	const cause = "clocks-apart"
	back := together("clock-back", "over the end of a cell", "0: the store's time never goes back",
		0)
	regions := int64(len(e.Splits[0].Units))
	switch {
	case regions == 1:
		return []Bound{together(cause, "by d, in real time", "0: one region has one clock", 0),
			back}
	case regions == 2 && e.Clock >= 2*e.Cell && (e.Kind.Sliding() || e.Kind.Bucket()):
		return []Bound{together(cause, "by d, in real time", "0: two cells apart they do not trade",
			0), back}
	case e.Kind.Traits().LendsBurst:
		return []Bound{together(cause, "by d, in real time, once",
			"ceil(2 min(d, 2 cells) (L - least F) / W)",
			mulDivUp(e.ahead(entitled), 2*e.near(), e.Window)), back}
	case e.Kind.Bucket():
		return []Bound{together(cause, "by d, in real time, once",
			"ceil(min(d, 2 cells) (L - least F) / W)",
			mulDivUp(e.ahead(entitled), e.near(), e.Window)), back}
	case e.Kind.Sliding():
		return []Bound{e.fadesApart(cause), back}
	}
	return []Bound{e.windowsApart(cause, regions), back}
}

// near returns the largest difference, in microseconds, between the clocks of regions that trade
// with each other.
func (e Exposure) near() int64 { return min(e.Clock, 2*e.Cell) }

// windowsApart returns the bound for fixed windows. An interval of real time sees parts of two
// windows of each region. If clocks are apart, it sees as many more windows of all regions
// together. If clocks are so far apart that a chain of trading regions cannot span the difference,
// at least one region trades with nobody.
func (e Exposure) windowsApart(cause string, regions int64) Bound {
	const when = "by d, in any interval T of real time"
	if 2*(regions-1) <= e.Clock/e.Window {
		more, _ := mulDiv(e.ahead(entitled), 2*(regions-2), 1)
		return together(cause, when, "2 (regions - 2) (L - least F); here T = W", more)
	}
	more, _ := mulDiv(mulDivUp(e.Clock, 1, e.Window), int64(e.Limit), 1)
	return together(cause, when, "(ceil((T+d)/W)+1) L, less 2 L; here T = W", quantity.Units(more))
}

// fadesApart returns the bound for the sliding kinds. By one region's clock, use of what was lent
// has faded more than by the other's. The log counts an entry whole or not at all.
func (e Exposure) fadesApart(cause string) Bound {
	const when = "by d, in any interval W of real time"
	lent, beyond := e.ahead(func(h Holding) quantity.Units { return h.Lends }),
		max(e.Clock-e.ClockMargin, 0)
	if e.Kind.Traits().WholeEntries {
		if beyond == 0 {
			lent = 0
		}
		return together(cause, when, "d<=margin: 0, else sum of l F but the least", lent)
	}
	return together(cause, when, "sum of l F but the least x (d - margin) / W",
		mulDivUp(lent, min(beyond, e.Window), e.Window))
}

func entitled(h Holding) quantity.Units { return h.Entitlement }

// ahead returns the largest sum of a value over all regions but the one with the least of it. That
// region may be the one whose clock is furthest behind.
func (e Exposure) ahead(of func(Holding) quantity.Units) (most quantity.Units) {
	for _, s := range e.Splits {
		sum, least := quantity.Units(0), quantity.Units(maxInt64)
		for _, h := range e.holdings(s) {
			sum += of(h)
			least = min(least, of(h))
		}
		most = max(most, sum-least)
	}
	return most
}

// set returns the bounds for what operators do on purpose: a reset, and a change of the policy
// document.
func (e Exposure) set() []Bound {
	const reset, change = "reset", "policy-change"
	const each, both = "each time, in its window", "each window under two documents"
	if e.Kind.Bucket() {
		return []Bound{e.each(reset, each, "B_max", mostBurst),
			together(change, both, "L + burst, as the old document has them", e.Limit+e.burst())}
	}
	return []Bound{e.each(reset, each, "S_max", mostRights),
		together(change, both, "L, as the old document has it", e.Limit)}
}

// burst returns the burst of all regions together.
func (e Exposure) burst() (sum quantity.Units) {
	for _, b := range e.Splits[0].Burst {
		sum += b
	}
	return sum
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
