package allocator

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// storeLost returns the bounds for a store that comes back without its data. A bucket that is not
// recovered is closed. The use of a recovered one is restored from what the nodes saw last and from
// checkpoints and their copies, which lag by at most a hundredth of the entitlement and a second. Until all nodes
// have told, as many units count as used as any region can have had.
func (e Exposure) storeLost() []Bound {
	const cause = "store-lost"
	if !e.Recovered {
		return []Bound{together(cause, "any loss", "0: the cells it concerns are closed", 0)}
	}
	lag := func(seconds quantity.Units) func(Holding) quantity.Units {
		return func(h Holding) quantity.Units {
			return min(mulDivUp(h.Entitlement, 1, 100)+seconds*e.rate(), h.Rights)
		}
	}
	return []Bound{
		together(cause, "the nodes that decided still run",
			"used - restored: 0, but answers in flight", 0),
		together(cause, "one of them is not heard", "0: until then all counts as used", 0),
		e.each(cause, "one is lost, too, and left a copy", "min(ceil(F / 100) + 2 r, S_max)", lag(2)),
		e.each(cause, "it went on unheard before that", "what it used unheard, at most S_max", maxRights),
		e.each(cause, "they ended, too, and are back", "min(ceil(F / 100) + r, S_max)", lag(1)),
	}
}

// debtLost returns the bound for what a loss of the store forgives: it forgets what the bucket of a
// region owed, which begins without tokens.
func (e Exposure) debtLost() []Bound {
	if e.MaxDebt == 0 {
		return nil
	}
	return []Bound{e.each("store-lost", "any loss, what was owed is forgiven", "max_debt, once",
		func(Holding) quantity.Units { return e.MaxDebt })}
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
		once := e.each(cause, "once, when it forks", "B - level + lag, at most B_max", maxBurst)
		return append([]Bound{once}, e.servedTwice(cause, "")...)
	}
	return append([]Bound{
		e.each(cause, "the window of the fork, S used up", "min(lag, S_max)",
			func(h Holding) quantity.Units { return min(e.Lag, h.Rights) }),
		e.each(cause, "the window of the fork", "S - used + lag, at most S_max", maxRights),
	}, e.servedTwice(cause, "later ")...)
}

// secondStore returns the bounds for two stores that serve one region at the same time, each with
// the region's whole share, of which the second began with nothing used. Nodes that can ask each
// other find out before the second serves.
func (e Exposure) secondStore() []Bound {
	const cause = "second-store"
	b := []Bound{together(cause, "nodes that can ask each other",
		"0: it is not begun, or its nodes stop", 0)}
	if e.Kind.Bucket() {
		b = append(b, e.each(cause, "once, when the second begins", "B_max", maxBurst))
	}
	return append(b, e.servedTwice(cause, "")...)
}

// servedTwice returns the bounds for each window in which two stores serve one region. later says
// which windows, where the first is another matter.
func (e Exposure) servedTwice(cause, later string) []Bound {
	if !e.Kind.Bucket() {
		return []Bound{
			e.each(cause, "each "+later+"window, nothing borrowed", "F",
				func(h Holding) quantity.Units { return h.Entitlement }),
			e.each(cause, "each "+later+"window while both serve", "S_max", maxRights),
		}
	}
	span, each := e.span()
	b := []Bound{e.each(cause, each+", nothing borrowed", "F x time",
		func(h Holding) quantity.Units { return mulDivUp(h.Entitlement, span, e.Window) })}
	// Others lend tokens again and again, but no more than the limit refills.
	if e.Kind.Traits().LendsBurst {
		all := min(mulDivUp(e.Limit, span, e.Window), MaxExcess) + e.burst()
		return append(b, e.each(cause, each+" while both serve",
			"L x time + burst of all regions", func(Holding) quantity.Units { return all }))
	}
	return append(b, e.each(cause, each+" while both serve", "S_max x time",
		func(h Holding) quantity.Units { return mulDivUp(h.Rights, span, e.Window) }))
}

func maxRights(h Holding) quantity.Units { return h.Rights }

func maxBurst(h Holding) quantity.Units { return h.MaxBurst }

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
// older time for a loss of the store. So does a node that starts again, by the last time in its
// journal. If neither one runs, nobody notices.
func (e Exposure) liveCopy() []Bound {
	const cause = "live-copy"
	b := []Bound{together(cause, "a node that had a later time from it",
		"0: it is noticed, and a loss", 0)}
	if e.Nodes > 1 {
		b = append(b, e.each(cause, "another node, until that one notices",
			"r for a second, at most S_max", func(h Holding) quantity.Units {
				return min(e.rate(), max(h.Rights, h.MaxBurst))
			}))
	}
	return append(b, e.forgotten(cause, "no node runs that noted a later one"))
}

// keyDeleted returns the bounds for the deletion of one bucket's hash from the store. What the
// bucket had used and lent is forgotten, and rights that it gave back may be credited to it again.
// All of that together was within what this region and others may hold. A token or leaky bucket
// starts full again, and its rows of two cells are gone.
func (e Exposure) keyDeleted() []Bound {
	const cause = "key-deleted"
	return []Bound{together(cause, "the node asked first had used it then",
		"0: it is noticed, and closed or recovered", 0),
		e.forgotten(cause, "that node has no note of it")}
}

// forgotten returns the bound for a store that forgets all of a bucket, and nobody notices.
func (e Exposure) forgotten(cause, when string) Bound {
	if e.Kind.Bucket() {
		return e.each(cause, when, "B_max + sum of l F x 2 cells / W",
			func(h Holding) quantity.Units {
				return h.MaxBurst + min(mulDivUp(h.Lends+h.Lent, 2*e.Cell, e.Window), MaxExcess)
			})
	}
	return e.each(cause, when, "used + lent, at most F + others' l F",
		func(h Holding) quantity.Units { return min(h.Entitlement+h.Lent, e.Limit) })
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

// late returns the bounds for Envoys that take what they are assigned later than a second after it
// was sent, or whose reports all come later. By then the node may have given the rights to others. An Envoy has one assignment at a
// time, so it admits no more than that is for. There are none for a limit without assign.
func (e Exposure) late() []Bound {
	const cause = "late-envoy"
	if e.TTL == 0 {
		return nil
	}
	kept := together(cause, "any Envoys take messages within 1 s", "0: rights are held that long", 0)
	if e.Kind == algorithms.FixedWindow { // the units of each part were held of the window before
		return []Bound{kept, together(cause, "all later, each its own part", "L", e.Limit)}
	}
	return []Bound{
		kept,
		together(cause, "all later, each its own part", "L x TTL + M",
			mulDivUp(e.Limit, e.TTL, e.Window)+e.EnvoyBurst),
	}
}

// clocksApart returns the bounds for store clocks that differ, or that step back. Labelled windows
// are exact under any clock; these bounds are about real time. Two regions trade only rights of
// cells that both are in or next to, so they do not trade if their clocks are two cells apart. What
// the region furthest behind lends does no harm: by its own clock it waits for longer than the
// borrower's use weighs.
func (e Exposure) clocksApart() []Bound {
	const cause = "clocks-apart"
	back := e.clockBack()
	regions := int64(len(e.Splits[0].Units))
	switch {
	case regions == 1:
		return append([]Bound{together(cause, "by d, in real time", "0: one region has one clock", 0)},
			back...)
	case regions == 2 && e.Clock >= 2*e.Cell && (e.Kind.Sliding() || e.Kind.Bucket()):
		return append([]Bound{together(cause, "by d, in real time",
			"0: two cells apart they do not trade", 0)}, back...)
	case e.Kind.Traits().LendsBurst:
		return append([]Bound{together(cause, "by d, in real time, once",
			"ceil(2 min(d, 2 cells) (L - least F) / W)",
			mulDivUp(e.ahead(entitled), 2*e.near(), e.Window))}, back...)
	case e.Kind.Bucket():
		return append([]Bound{together(cause, "by d, in real time, once",
			"ceil(min(d, 2 cells) (L - least F) / W)",
			mulDivUp(e.ahead(entitled), e.near(), e.Window))}, back...)
	case e.Kind.Sliding():
		return append([]Bound{e.fadesApart(cause)}, back...)
	}
	return append([]Bound{e.windowsApart(cause, regions)}, back...)
}

// clockBack returns the bounds for a store whose clock steps back. Its time does not, not even
// after a loss of all its data, if the node that opens it, or another that it reaches, was told the
// time. Otherwise the store times until then come once more.
func (e Exposure) clockBack() []Bound {
	const cause, when = "clock-back", "by d in a loss, no node heard knew it"
	b := []Bound{together(cause, "over the end of a cell", "0: the store's time never goes back", 0)}
	if e.Kind.Bucket() {
		return append(b, e.each(cause, when, "B_max + S_max x d", func(h Holding) quantity.Units {
			return h.MaxBurst + min(mulDivUp(h.Rights, e.Clock, e.Window), MaxExcess)
		}))
	}
	return append(b, e.each(cause, when, "S_max, in each window of d", maxRights))
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

// set returns the bounds for what operators do on purpose: a reset, a change of the policy
// document, and a fence. The others use what a fenced region was entitled to, whether it runs or
// not.
func (e Exposure) set() []Bound {
	const reset, fence = "reset", "fenced-alive"
	const each, runs = "each time, in its window", "each window while it runs, cut off"
	change := together("policy-change", "regions under different documents",
		"0: each uses the least of what they give it", 0)
	if e.Kind.Bucket() {
		span, _ := e.span()
		return []Bound{e.each(reset, each, "B_max", maxBurst), change,
			e.each(fence, runs, "B_max + S_max x time", func(h Holding) quantity.Units {
				return h.MaxBurst + min(mulDivUp(h.Rights, span, e.Window), MaxExcess)
			})}
	}
	return []Bound{e.each(reset, each, "S_max", maxRights), change,
		e.each(fence, runs, "S_max", maxRights)}
}

// burst returns the burst of all regions together.
func (e Exposure) burst() (sum quantity.Units) {
	for _, b := range e.Splits[0].Burst {
		sum += b
	}
	return sum
}
