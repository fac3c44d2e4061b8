package exchange

import (
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// Tokens of a token bucket are moved with the capacity that holds them (burst rights), until the
// cell ends. Tokens that the borrower has not used by then are lost to all: its bucket has no room
// for them, and the lender does not get them back. So they are asked for as late as possible, and
// for a large cost only if all that it lacks can probably be had.

// planBurst asks for the tokens that a token bucket will lack until its cell ends.
func (m *Machine) planBurst(now quantity.NodeTime, v *view) {
	if !v.frame.LendsBurst || m.noBurst {
		return
	}
	s := m.storeTime(now)
	if v.isShut(s) {
		return
	}
	cell := v.Cells().At(s)
	o, _ := v.outlook(cell, s, v.burstRate(now)+v.mates.rate(now))
	n := allocator.Need{Outlook: o, Share: v.state.Share, Waiting: v.wanted, Home: v.Home,
		HomeWaits: v.wants(now)}
	// Requests wait for one and a half round trips (rights.Engine.Patience). What is asked for when a
	// quarter of one has passed may come after they have given up.
	if v.wanted > 0 && now.Add(m.farthest()+3*m.farthest()/4) > v.wantedUntil {
		n.Waiting = 0
	}
	lacking := n.ShortOfBurst(v.Cells().Opens(cell + 1).Sub(s))
	if v.wanted == 0 {
		lacking -= v.pending(cell).burst
	}
	if lacking <= 0 || m.crowdedOut(now, v) {
		return
	}
	offers := m.burstOffers(now, v, cell)
	if m.ownLarge(now, v) > 0 && !m.comesAgain(now, v) {
		m.askBurst(now, v, cell, m.portionsOfLarge(now, v, cell, lacking, offers))
		return
	}
	m.askBurst(now, v, cell, m.scratch.Divide(lacking, 0, offers, allocator.PPM, true))
}

// comesAgain reports whether a large cost was denied here before, and no other region has
// asked for one lately: then all peers are asked.
func (m *Machine) comesAgain(now quantity.NodeTime, v *view) bool {
	return v.large.before > 0 && now.Sub(v.large.before) <= burstLife &&
		!slices.ContainsFunc(v.dealings, func(d dealing) bool { return d.large.cost > 0 && now.Sub(d.large.at) <= burstLife })
}

// burstOffers returns how many tokens each peer may have to lend.
func (m *Machine) burstOffers(now quantity.NodeTime, v *view, cell quantity.Cell) []allocator.Offer {
	offers := m.offered[:0]
	for i, p := range m.peers {
		d := &v.dealings[i]
		pos := d.at(cell)
		if p.degraded(now) || pos.pending.burst > 0 && v.wanted == 0 ||
			now < pos.burstRefusedUntil {
			continue
		}
		spare := v.spareBurstOf(d, cell, now)
		if v.covers(cell) > 0 { // for what is owed it lends what it keeps for itself
			spare = max(spare, d.part.LendableBurst-pos.row.BurstBorrowed)
		}
		offers = append(offers, allocator.Offer{Peer: i, Spare: spare})
	}
	m.offered = offers
	return offers
}

// burstLife is how long a peer's answer about its tokens is believed where a large cost is wanted:
// while a caller that was denied comes again twice.
const burstLife = 3 * allocator.Second

// saidBurst reports whether a peer has just said how many tokens it has to lend, and no other region
// was served since.
func (v *view) saidBurst(now quantity.NodeTime, d *dealing) bool {
	return d.burstAt > v.served && now.Sub(d.burstAt) <= burstLife
}

// askBurst asks peers for tokens, beyond what was asked of them before.
func (m *Machine) askBurst(now quantity.NodeTime, v *view, cell quantity.Cell, portions []allocator.Portion) {
	for _, portion := range portions {
		p := m.peers[portion.Peer]
		pos := v.dealings[portion.Peer].at(cell)
		more := portion.Units - pos.pending.burst
		if more <= 0 {
			continue
		}
		if !m.mayAsk(p) {
			m.wait(now, v, p)
			continue
		}
		a := m.askOf(now, v, pos)
		a.Burst = min(a.Burst+portion.Units, algorithms.MaxUnits)
		m.put(now, p, pos, a, gain{burst: more})
	}
}

// portionsOfLarge returns whom to ask for the tokens that a large cost lacks. If one peer may have
// all of them, it alone is asked for them, the first such in the order of the cell: regions that want
// tokens at the same time then ask the same one, which serves one of them. Else all are asked, but
// only if they have just said that together they have enough, and no region that comes first wants a
// large cost: what one of them lends in vain is lost to all. Those that are not asked for tokens are
// told that this region wants a large cost, and say what they have: once in a round trip, however many
// requests wait.
func (m *Machine) portionsOfLarge(now quantity.NodeTime, v *view, cell quantity.Cell, lacking quantity.Units,
	offers []allocator.Offer) (portions []allocator.Portion) {
	said := true
	for i := range offers {
		d := &v.dealings[offers[i].Peer]
		saidIt := v.saidBurst(now, d)
		if _, heardAt := d.together(now); saidIt && d.burstAt >= heardAt {
			offers[i].Spare = d.burst
		}
		said = said && saidIt
	}
	slices.SortStableFunc(offers, func(a, b allocator.Offer) int {
		if allocator.ComesFirst(v.ID, cell, m.peers[a.Peer].name, m.peers[b.Peer].name) {
			return -1
		}
		return 1
	})
	if one := slices.IndexFunc(offers, func(o allocator.Offer) bool { return o.Spare >= lacking }); one >= 0 {
		portions = m.scratch.Fill(lacking, offers[one:one+1])
	} else if said && allocator.Offered(offers) >= lacking && !m.anotherComesFirst(now, v, cell) {
		portions = m.scratch.Fill(lacking, offers)
	}
	for _, o := range offers {
		p, pos := m.peers[o.Peer], v.dealings[o.Peer].at(cell)
		asked := slices.ContainsFunc(portions, func(p allocator.Portion) bool { return p.Peer == o.Peer })
		if !asked && now.Sub(pos.askedAt) >= m.farthest() && m.mayAsk(p) {
			m.put(now, p, pos, m.askOf(now, v, pos), gain{})
		}
	}
	return portions
}

// lendInTime lends tokens only if they can be used before the cell ends, for they are lost to all
// then: if they arrive in time, and if a large cost gets all that was asked for.
func (m *Machine) lendInTime(now quantity.NodeTime, v *view, peer string, a Ask, d *algorithms.Debit) {
	if !v.frame.LendsBurst || m.noLarge {
		return
	}
	p := m.peer(peer)
	if p == nil {
		return
	}
	needs := p.expected() / 2 // until they are there
	if a.Large > 0 {
		needs = p.expected() // and until the request is decided again
		d.LeastBurst = a.Burst - v.dealing(peer).at(a.Cell).row.BurstLent
	}
	if v.Cells().Opens(a.Cell+1).Sub(m.storeTime(now)) < needs {
		d.LeastBurst = algorithms.MaxUnits
	}
}
