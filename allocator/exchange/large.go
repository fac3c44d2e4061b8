package exchange

import (
	"cmp"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// A large cost (allocator.IsLarge) is one that a region denies because its share does not hold it,
// though all regions together may. For the plan it is demand once, whole. The region keeps what it
// holds up to the cost, and gives of that only what another region owes, or what a region asks for
// that wants a large cost too and comes first (allocator.ComesFirst). So of several regions one is
// served.
//
// Of a token bucket, tokens are moved for a large cost only while its request waits (on_exhausted:
// borrow): tokens that are here at the end of a cell without a use are lost to all.

// large is a cost that was denied here.
type large struct {
	cost   quantity.Units
	at     quantity.NodeTime // when it was denied last
	before quantity.NodeTime // when one was denied before that, apart from the same moment; 0: none was
}

// Admit adds an admitted cost. part is what its class may use of the bucket's rights.
func (o *Observed) Admit(cost quantity.Units, part quantity.PPM) {
	if o.Requests.Admit(cost, o.Bucket.Limit); part < algorithms.Whole && o.Bucket.Kind.Traits().CellsApart {
		o.Capped += cost
	}
}

// Deny adds a denied cost that the limit could admit. One of a class that may use only a part of the
// bucket's rights is no demand: they are there for the other classes.
func (o *Observed) Deny(cost quantity.Units, part quantity.PPM) {
	if part < algorithms.Whole {
		return
	}
	if o.Requests.Deny(cost, o.Bucket.Limit); allocator.IsLarge(cost, o.Bucket.Limit) {
		o.Large = max(o.Large, cost)
	}
}

// DenyUnits adds so many denied requests of a unit each.
func (o *Observed) DenyUnits(units quantity.Units) {
	o.Add(allocator.Requests{Denied: units, Squares: uint64(units)})
}

// deniedLarge takes in the largest cost that was denied since the last report; 0: none. The largest
// of the last second counts, until as much is admitted.
func (v *view) deniedLarge(now quantity.NodeTime, cost, admitted quantity.Units) {
	if v.large.cost > 0 && admitted >= v.large.cost {
		v.large = large{}
	}
	if cost == 0 {
		return
	}
	if cost >= v.large.cost || now.Sub(v.large.at) > allocator.Second {
		before := v.large.before
		if now.Sub(v.large.at) > allocator.Second/2 {
			before = v.large.at
		}
		v.large = large{cost, now, before}
	}
}

// reach returns the most units that this region can hold of a cell.
func (v *view) reach() quantity.Units {
	return allocator.Reach(v.own, v.parts(), false)
}

// parts returns the parts of all peers.
func (v *view) parts() (all []allocator.RegionPart) {
	for i := range v.dealings {
		all = append(all, v.dealings[i].part)
	}
	return all
}

// ownLarge returns the large cost that callers of this node want; 0: none. Of requests that wait
// that is what all of them cost. A cost that would not even fit with all that others may lend is
// none.
func (m *Machine) ownLarge(now quantity.NodeTime, v *view) (cost quantity.Units) {
	if m.noLarge {
		return 0
	}
	if allocator.IsLarge(v.wanted, v.Limit) {
		cost = v.wanted
	}
	if v.frame.Bucket {
		return cost
	}
	if l := v.large; l.cost > cost && now.Sub(l.at) <= allocator.LargeLasts(m.farthest()) {
		cost = l.cost
	}
	if cost > 0 && v.planned().Used+cost > v.reach() {
		return 0
	}
	return cost
}

// wantsLarge returns the large cost that callers of this region want, as far as this node knows.
func (m *Machine) wantsLarge(now quantity.NodeTime, v *view) quantity.Units {
	cost := m.ownLarge(now, v)
	if mates, at := v.mates.together(now); at > 0 {
		cost = max(cost, mates.Large)
	}
	return cost
}

// asksLarge returns the large cost that is to be asked for: none while a region that comes first
// wants one, for it would only get in that one's way. What this region has whole it asks for anew
// in the next cell.
func (m *Machine) asksLarge(now quantity.NodeTime, v *view, cell quantity.Cell) quantity.Units {
	cost := m.wantsLarge(now, v)
	if cost == 0 || v.wanted > 0 || v.Home || v.holds(v.state.Cell, cost) {
		return cost
	}
	if m.anotherComesFirst(now, v, cell) {
		return 0
	}
	return cost
}

// anotherComesFirst reports whether a peer wants a large cost that comes before this region.
func (m *Machine) anotherComesFirst(now quantity.NodeTime, v *view, cell quantity.Cell) bool {
	return slices.ContainsFunc(v.dealings, func(d dealing) bool {
		return m.peerWantsLarge(now, &d) && m.comesFirst(v, cell, d.peer.name)
	})
}

// peerWantsLarge reports whether a peer wants a large cost, by its last ask or its hints.
func (m *Machine) peerWantsLarge(now quantity.NodeTime, d *dealing) bool {
	if d.large.cost > 0 && now.Sub(d.large.at) <= allocator.LargeLasts(m.farthest()) {
		return true
	}
	h, at := d.together(now)
	return at > d.large.at && h.Large > 0
}

// keepsLarge returns how many units, or tokens, this region keeps from a peer because it wants a
// large cost, and notes what the peer wants. It keeps a cost that it has whole: its caller comes
// again soon.
func (m *Machine) keepsLarge(now quantity.NodeTime, v *view, peer string, a Ask) quantity.Units {
	wants := cmp.Or(a.For, peer)
	if d := v.dealing(wants); a.Large > 0 || a.For == "" {
		if a.Large == 0 && d.large.cost > 0 {
			v.served = now
		}
		d.large = large{cost: a.Large, at: now}
	}
	cost := m.wantsLarge(now, v)
	if !v.holds(a.Cell, cost) && a.Large > 0 && m.comesFirst(v, a.Cell, wants) {
		return 0
	}
	return cost
}

// regainFor asks other peers to give back what they have borrowed of the cell, because a peer wants
// a large cost and got less than it asked for. It reports whether it asked one.
func (m *Machine) regainFor(now quantity.NodeTime, v *view, peer string, a Ask, lacks quantity.Units) (asked bool) {
	if a.Large == 0 || a.For != "" || v.frame.Bucket || a.Cell != v.state.Cell || m.noLarge {
		return false
	}
	for i, p := range m.peers {
		pos := v.dealings[i].at(a.Cell)
		units := min(lacks, pos.out())
		if p.name == peer || units <= 0 || pos.pending.units > 0 || now < pos.refusedUntil || p.degraded(now) || !m.mayAsk(p) {
			continue
		}
		back := m.askOf(now, v, pos)
		back.Returned += units
		back.Large, back.For = a.Large, peer
		m.put(now, p, pos, back, gain{units: units})
		lacks, asked = lacks-units, true
	}
	return asked
}

// holds reports whether this region has room for a cost, which what is lent of a cell would take.
// Of a sliding kind, what is promised of the next cell must be free now.
func (v *view) holds(cell quantity.Cell, cost quantity.Units) bool {
	return (cell == v.state.Cell || v.frame.Sliding) && v.state.Free >= cost
}

// comesFirst reports whether a peer comes before this region. Where what is lent of a cell weighs
// in those after it, the order holds for a window.
func (m *Machine) comesFirst(v *view, cell quantity.Cell, peer string) bool {
	if v.frame.WholeEntries {
		cell /= quantity.Cell(v.Window / v.Bucket.Cell)
	}
	return allocator.ComesFirst(v.ID, cell, peer, m.region)
}

// LentFrom returns after how long a request for a cost does best to ask for tokens, in us: 0, or when
// the bucket's cell ends, if what is asked for now would come too late for a large cost (lendInTime).
// patience is for how long the request then waits for them.
func (b *Bucket) LentFrom(now quantity.StoreTime, cost quantity.Units, patience int64) int64 {
	if !b.Kind.Traits().LendsBurst || !allocator.IsLarge(cost, b.Limit) {
		return 0
	}
	cells := b.Cells()
	if rest := cells.Opens(cells.At(now) + 1).Sub(now); rest < patience {
		return rest
	}
	return 0
}

// Reach returns the most that a region can hold of the bucket at once: what it is entitled to, and
// what all others may lend it. It is units of a cell, or tokens of a token_bucket, of which a
// leaky_bucket lends none.
func (b *Bucket) Reach(region string) quantity.Units {
	var others []allocator.RegionPart
	for name := range b.Entitlements {
		if name != region {
			others = append(others, b.part(name))
		}
	}
	if b.Kind.Bucket() && !b.Kind.Traits().LendsBurst {
		others = nil
	}
	return allocator.Reach(b.part(region), others, b.Kind.Bucket())
}
