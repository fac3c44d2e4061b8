package exchange

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

// soon is the time before which a region must have asked for what it will lack of a cell that opens after a time: two
// round trips and a tick; one tick more where only ticks look ahead.
func (m *Machine) soon(opens int64) int64 {
	t := 2*m.farthest() + Interval
	if opens > 0 {
		t = max(t+Interval-opens, 0)
	}
	return t
}

// once says whether what a bucket lacks of a cell is asked for at once, when it is needed: of a fixed window.
func (v *view) once() bool { return v.Kind == algorithms.FixedWindow }

// fewUnits is a demand, in milliunits per second, of which a mean over a second or two tells nothing.
const fewUnits = 16_000

// likely returns the demand in this region as it asks for it: the mean, unless it has plainly changed. The highest of the
// last samples, which tells when to ask, would be too much every other time.
func (m *Machine) likely(now int64, v *view) int64 {
	rate := v.rateNow(now)
	if rate >= fewUnits && !changed(v.mean, rate) {
		rate = v.mean
	}
	return rate + v.mates.rate(now)
}

// short returns what to ask for of a cell, whoever has it, and how much more of what peers are thought to have to spare.
// That is a standard deviation of what is still to come, so that not every other cell is asked for twice; but where the
// water-fill does not give all that is wanted, no more than the entitlement, and for a region that denies what peers
// still have: it may be that they want less than they did.
func (m *Machine) short(now int64, v *view, cell int64, o allocator.Outlook, opens, wanted int64) (short, room int64) {
	share := v.share(cell)
	short = min(o.Used+wanted, v.entitlement()+v.own.borrowable) - share
	if wanted == 0 {
		target := m.target(now, v, cell, o.Total())
		short = max(short, allocator.Short(o, opens, target, share))
		room = root(short + o.Total() - o.Used)
		switch {
		case !v.once():
			room = 0
		case target >= o.Total():
		case v.inNeed(now):
			room = allocator.Short(o, opens, o.Total(), share) - short
		default:
			room = min(room, max(v.entitlement()-share-short, 0))
		}
	}
	if v.Home { // what one region takes beyond the next request, another lacks
		return min(short, o.Used+v.wants(now)-share), 0
	}
	return short, max(room, 0)
}

// target is this region's part of the water-fill of a cell. Where no other region is known to want more than its
// entitlement there is nothing to be fair about, and it is all this region wants: hints of demand that fell are late,
// and the lenders know what they keep.
func (m *Machine) target(now int64, v *view, cell, total int64) int64 {
	if !v.contended(cell, now) {
		return min(total, v.entitlement()+v.own.borrowable)
	}
	m.claims = append(m.claims[:0], v.own.claim(total))
	for i := range v.dealings {
		d := &v.dealings[i]
		m.claims = append(m.claims, d.part.claim(v.expects(d, cell, now)))
	}
	return m.desk.WaterFill(m.claims)[0]
}

// contended says whether any other region is known to want more of a cell than its entitlement.
func (v *view) contended(cell, now int64) bool {
	for i := range v.dealings {
		if d := &v.dealings[i]; v.expects(d, cell, now) > d.part.entitlement {
			return true
		}
	}
	return false
}

// claim is what a region with a demand brings to the water-fill.
func (p *part) claim(demand int64) allocator.Claim {
	return allocator.Claim{Entitlement: p.entitlement, Demand: demand, Borrow: p.borrowable, Lend: p.lendable}
}

// fewest leaves those that have most on offer, as few of them as have half as much again as is asked for: what the others
// have is left to them, and they are not written to.
func fewest(offers []allocator.Offer, units int64) []allocator.Offer {
	slices.SortStableFunc(offers, func(a, b allocator.Offer) int { return cmp.Compare(b.Back+b.Spare, a.Back+a.Spare) })
	var sum int64
	for i, o := range offers {
		if sum += o.Back + o.Spare; sum >= units+units/2 {
			return offers[:i+1]
		}
	}
	return offers
}

// root returns the square root of n, rounded down; of what is below zero, zero.
func root(n int64) int64 {
	if n <= 0 {
		return 0
	}
	r := int64(1) << ((bits.Len64(uint64(n)) + 1) / 2)
	for next := (r + n/r) / 2; next < r; next = (r + n/r) / 2 {
		r = next
	}
	return r
}
