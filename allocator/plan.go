package allocator

import (
	"cmp"
	"slices"
)

// Claim is what one region brings to the water-fill of one cell.
type Claim struct {
	Entitlement int64
	Demand      int64 // units it expects to admit in the whole cell if it may
	Borrow      int64 // most it may borrow on top of its entitlement
	Lend        int64 // most it may lend of its entitlement
}

// floor is what a region gets before anyone borrows.
func (c Claim) floor() int64 { return min(c.Entitlement, c.Demand) }

// WaterFill returns each region's target share of a cell: a weighted max-min fair division (Bertsekas and
// Gallager, Data Networks, 6.5.2). Everyone gets min(entitlement, demand) first; what regions then leave over, within
// their lending limits, goes to unmet demand in proportion to the entitlements (a region without any weighs 1 unit),
// within the borrowing limits, rounded by largest remainder. The sum never exceeds that of the entitlements.
func WaterFill(claims []Claim) []int64 { return new(Desk).WaterFill(claims) }

// Desk has room to work out divisions on, so that one after another allocates nothing. What it returns holds until it is
// used again. The zero value is ready to use; not safe for concurrent use.
type Desk struct {
	target, unmet, weights, given, remainder []int64
	order                                    []int
	portions                                 []Portion
}

// WaterFill is the function of that name.
func (k *Desk) WaterFill(claims []Claim) []int64 {
	k.target, k.unmet = sized(k.target, len(claims)), sized(k.unmet, len(claims))
	target, unmet := k.target, k.unmet
	var spare int64
	for i, c := range claims {
		target[i] = c.floor()
		spare += min(c.Entitlement-target[i], c.Lend)
		unmet[i] = max(min(c.Demand-c.Entitlement, c.Borrow), 0)
	}
	for spare > 0 {
		given := k.pour(spare, claims, unmet)
		var sum int64
		for i, g := range given {
			target[i] += g
			unmet[i] -= g
			sum += g
		}
		if sum == 0 {
			break
		}
		spare -= sum
	}
	return target
}

// pour divides spare once over the regions with unmet demand, nobody more than its own.
func (k *Desk) pour(spare int64, claims []Claim, unmet []int64) []int64 {
	k.weights = sized(k.weights, len(claims))
	weights := k.weights
	var total int64
	for i, c := range claims {
		if unmet[i] > 0 {
			weights[i] = max(c.Entitlement, 1)
			total += weights[i]
		}
	}
	if total == 0 {
		return weights // all 0
	}
	given := k.entitlements(spare, weights, 0)
	for i := range given {
		given[i] = min(given[i], unmet[i])
	}
	return given
}

// Outlook is what a region expects of one cell. Where rights are units of the cell, it is about units that count
// against them; where they are a rate (Steady), about units in a window, and the same at any moment.
type Outlook struct {
	Used   int64 // units that count now; before the cell opens, those that will when it does
	Fading int64 // of Used, those that count no more at the end
	Rate   int64 // demand, milliunits per second
	Ahead  int64 // microseconds still to come: to the cell's end, or its whole length before it opens; Steady: the window
	Steady bool
	Stock  int64 // Steady: units at hand, whatever the rate
}

// Total returns the most units that will count at any time until the end of the cell.
func (o Outlook) Total() int64 { return o.Until(o.Ahead) }

// Until returns the most units that will count at any time in the next t microseconds, or until the cell's end.
func (o Outlook) Until(t int64) int64 {
	if t = min(t, o.Ahead); o.Steady {
		t = o.Ahead
	}
	if t <= 0 {
		return o.Used
	}
	faded, _ := mulDiv(o.Fading, t, o.Ahead)
	return o.Used + max(Over(o.Rate, t)-faded, 0)
}

// Horizon is how far ahead of its use a region gathers rights, in microseconds: little and often, so that what it
// turns out not to need was not taken from another.
const Horizon = 3 * Second

// Short returns how many units a region lacks: up to its target, what it needs within the horizon, less its share.
// opens is the time until the cell opens (0: it is open).
func Short(o Outlook, opens, target, share int64) int64 {
	return max(min(target, o.Until(max(Horizon-opens, 0)))-share, 0)
}

// Exhausted says whether a share will be used up within t microseconds at this demand; a steady one, whether what is at
// hand will be.
func Exhausted(o Outlook, t, share int64) bool {
	if o.Steady {
		return Lacking(o, t, share) > 0
	}
	return o.Until(t) > share
}

// Lacking returns how many units a steady share will be short of within t microseconds, beyond what is at hand.
func Lacking(o Outlook, t, share int64) int64 {
	return Over(o.Rate-PerSecond(max(share, 0), o.Ahead), t) - o.Stock
}

// Quantum is the smallest voluntary move, in units: a five-hundredth of the limit.
func Quantum(limit int64) int64 { return max(limit/500, 1) }

// FadesIn returns the time after which a region may have so many units more to spare, in microseconds, at most the given:
// as soon as so many more of what counts have faded than come.
func FadesIn(o Outlook, units, most int64) int64 {
	growth := PerSecond(o.Fading, o.Ahead) - o.Rate
	if growth <= 0 {
		return most
	}
	t, _ := mulDiv(units, 1000*Second, growth)
	return min(t, most)
}

// Move returns how much of a shortage to ask for at one tick. A region in need asks for all of it; any other closes
// half the gap, jittered (ppm, around PPM) so that regions do not move in step, and not less than a quantum.
func Move(short, quantum, jitter int64, inNeed bool) int64 {
	if inNeed || short <= 1 {
		return short
	}
	half := Part((short+1)/2, jitter)
	if half < quantum {
		half = min(quantum, short)
	}
	return min(half, short)
}

// Kept returns how many units of a cell, beyond those counted, a region keeps when a peer asks: what its floor, the
// lesser of entitlement and expected use, still lacks; at least its demand over grace (a round trip and a tick: the
// time in which it could ask for them back); and a reserve of at most a twentieth of its entitlement for what hints
// say that regions other than the asker want.
func Kept(o Outlook, counted, entitlement, grace, othersWant int64) int64 {
	kept := max(min(entitlement, o.Total())-counted, 0)
	if !o.Steady {
		kept = max(kept, o.Until(grace)-counted)
	}
	return kept + min(entitlement/20, max(othersWant, 0))
}

// KeptBurst returns how many tokens a region keeps when a peer asks for burst: what it expects to take from them within
// the horizon, beyond its refill, and at least its demand over grace.
func KeptBurst(o Outlook, share, grace int64) int64 {
	o.Stock = 0
	return max(Lacking(o, Horizon, share), Over(o.Rate, grace), 0)
}

// Offer is what one peer may have to give.
type Offer struct {
	Peer  int   // the caller's number of the peer
	Back  int64 // rights we lent it that it may give back
	Spare int64 // what it may lend of its own
	Some  bool  // it may have some, though it is not thought to; asked for the tail only
}

// Offered returns what peers are thought to have, all together.
func Offered(offers []Offer) (units int64) {
	for _, o := range offers {
		units += o.Back + o.Spare
	}
	return units
}

// Portion is the part of an ask that goes to one peer.
type Portion struct {
	Peer  int
	Units int64
}

// Divide splits an ask over the peers in proportion to what they may have, in whole units. A region in need asks for
// all it lacks, whatever they are thought to have, for that is old news and each lender knows what it keeps; any other
// asks nobody for more. Where more is lacking than they are all thought to have, the tail of the cell is scattered: then
// everybody is asked for up to tail units. jitter (ppm) turns the choice where few units meet many peers.
func Divide(units, tail int64, offers []Offer, jitter int64, inNeed bool) []Portion {
	return new(Desk).Divide(units, tail, offers, jitter, inNeed)
}

// Divide is the function of that name.
func (k *Desk) Divide(units, tail int64, offers []Offer, jitter int64, inNeed bool) []Portion {
	total := Offered(offers)
	k.weights = sized(k.weights, len(offers))
	weights := k.weights
	for i, o := range offers {
		weights[i] = o.Back + o.Spare
	}
	if !inNeed {
		units = min(units, total)
	}
	if units <= 0 || total == 0 && tail == 0 {
		return nil
	}
	split := weights // all 0
	if total > 0 {
		split = k.entitlements(units, weights, uint64(jitter))
	}
	portions := k.portions[:0]
	for i, u := range split {
		if total < units && offers[i].Some {
			u = max(u, tail)
		}
		if u > 0 {
			portions = append(portions, Portion{Peer: offers[i].Peer, Units: u})
		}
	}
	slices.SortFunc(portions, func(a, b Portion) int {
		if a.Units != b.Units {
			return cmp.Compare(b.Units, a.Units)
		}
		return cmp.Compare(a.Peer, b.Peer)
	})
	k.portions = portions
	return portions
}
