package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

// plan asks for what a bucket lacks in this cell and the next, half the gap at a time unless it is in need.
func (m *Machine) plan(now int64, v *view, jitter int64) {
	s := now + m.offset
	cell := algorithms.CellAt(s, v.Cell)
	v.roll(cell)
	m.planCell(now, v, cell, jitter)
	if !m.noAdvance {
		m.planCell(now, v, cell+1, jitter)
	}
	m.planBurst(now, v)
}

// planInNeed plans at once, but only for a region that denies or is about to.
func (m *Machine) planInNeed(now int64, v *view) {
	s := now + m.offset
	cell := algorithms.CellAt(s, v.Cell)
	v.roll(cell)
	if o, _ := v.outlook(cell, s, m.rateNow(now, v)); v.inNeed(now) || allocator.Exhausted(o, 2*m.farthest(), v.state.Share) {
		m.planCell(now, v, cell, allocator.PPM)
		if v.Kind != algorithms.FixedWindow && !m.noAdvance { // what counts now, or waits, will when the next cell opens
			m.planCell(now, v, cell+1, allocator.PPM)
		}
		m.planBurst(now, v)
	}
}

// wanted asks at once for what waiting requests lack.
func (m *Machine) wanted(now int64, e Wanted) {
	v := m.view(now, e.Bucket)
	if v == nil {
		m.out.Settled = append(m.out.Settled, Settled{Bucket: e.Bucket.ID})
		return
	}
	m.showed(e.Now, now)
	v.observe(e.State, e.Now)
	cell := algorithms.CellAt(e.Now, v.Cell)
	v.roll(cell)
	v.wanted, v.wantedUntil, v.wantedGot, v.deniedAt = e.Units, now+2*m.farthest(), false, now
	m.planCell(now, v, cell, allocator.PPM)
	m.planBurst(now, v)
	m.settle(v)
}

// settle ends the wait for rights of a bucket when they have come, or when nothing more is on its way.
func (m *Machine) settle(v *view) {
	cell := v.state.Cell
	come := v.state.Free >= v.wanted
	if v.wanted > 0 && (come || v.pending(cell)+v.pendingBurst(cell) == 0) {
		v.wanted = 0
		if v.Home && come {
			v.deniedAt = 0 // it has what it needs, and no more is to be fetched
		}
		m.out.Settled = append(m.out.Settled, Settled{Bucket: v.ID, Come: come || v.wantedGot})
	}
}

// farthest returns the longest round trip to expect.
func (m *Machine) farthest() int64 { return m.grace() - Interval }

// lead is how long before a cell opens its rights are asked for: late, for what was promised for a cell stays promised
// through a cut, yet in time to ask twice. A queue promises turns ahead, and lays out those of the next cell with the
// rights that it holds of it by then.
func (m *Machine) lead(v *view) int64 {
	if v.Kind == algorithms.LeakyBucket {
		return max(2*m.grace(), v.Cell)
	}
	return 2 * m.grace()
}

// planCell asks the peers that may have rights of a cell for what is short of the plan's target.
func (m *Machine) planCell(now int64, v *view, cell, jitter int64) {
	s := now + m.offset
	share := v.share(cell)
	o, opens := v.outlook(cell, s, m.rateNow(now, v))
	if opens > m.lead(v) || v.Home && (opens > 0 || o.Steady) { // in home mode: unit by unit, and tokens, not refill
		return
	}
	inNeed := v.inNeed(now) || allocator.Exhausted(o, max(2*m.farthest()+Interval-opens, 0), share)
	var wanted int64
	if opens == 0 && !o.Steady {
		wanted = v.wanted
	}
	if o.Total()+wanted <= share {
		return
	}
	short := min(o.Used+wanted, v.entitlement()+v.borrowable(m.region)) - share
	if wanted == 0 {
		short = max(short, allocator.Short(o, opens, m.target(now, v, cell, o.Total()), share))
	}
	if v.Home { // what one region takes beyond the next request, another lacks
		short = min(short, o.Used+v.wants(now)-share)
	}
	pending := v.pending(cell)
	if wanted > 0 { // requests wait: what is under way may have been asked for less
		pending = 0
	}
	offers := m.offers(now, v, cell)
	if inNeed && v.Kind.Sliding() && allocator.Offered(offers) < short {
		m.gather(now, v, cell, short)
		return
	}
	units := allocator.Move(short-pending, allocator.Quantum(v.Limit), jitter, inNeed)
	tail := int64(0)
	if inNeed && v.Cell >= longCell && !m.noTail {
		tail = units
	}
	for _, p := range allocator.Divide(units, tail, offers, jitter, inNeed) {
		if p.Units > v.dealing(m.peers[p.Peer].name).at(cell).pending {
			m.ask(now, v, m.peers[p.Peer], cell, p.Units)
		}
	}
}

// gather asks everybody for all that is lacking of a cell of a sliding kind, again and again while answers are under
// way: where use fades, each lender has a little more at every moment, and who waits for an answer before asking again is
// behind by a round trip more.
func (m *Machine) gather(now int64, v *view, cell, units int64) {
	for _, p := range m.peers {
		pos := v.dealing(p.name).at(cell)
		more := v.wanted > 0 && units > pos.pending
		if !p.degraded(now) && now >= pos.refusedUntil && (more || now-pos.askedAt >= v.again()) {
			m.ask(now, v, p, cell, units)
		}
	}
}

// longCell is the length of a cell from which on its tail matters: the last units of it are scattered over regions that
// need them no more, a few in each.
const longCell = 10 * allocator.Second

// target is this region's part of the water-fill of a cell. Where no other region is known to want more than its
// entitlement there is nothing to be fair about, and it is all this region wants: hints of demand that fell are late,
// and the lenders know what they keep.
func (m *Machine) target(now int64, v *view, cell, total int64) int64 {
	claims := make([]allocator.Claim, 0, len(m.peers)+1)
	contended := false
	claim := func(region string, demand int64) {
		claims = append(claims, allocator.Claim{Entitlement: v.Entitlements[region], Demand: demand,
			Borrow: v.borrowable(region), Lend: v.lendable(region)})
	}
	claim(m.region, total)
	for _, p := range m.peers {
		demand := v.expects(v.dealing(p.name), cell, now)
		contended = contended || demand > v.Entitlements[p.name]
		claim(p.name, demand)
	}
	if !contended {
		return min(total, v.entitlement()+v.borrowable(m.region))
	}
	return allocator.WaterFill(claims)[0]
}

// borrowed returns the rights of a cell that are borrowed, and those asked for.
func (v *view) borrowed(cell int64) (sum int64) {
	for _, d := range v.dealings {
		p := d.at(cell)
		sum += p.row.Borrowed - p.row.Returned + p.pending
	}
	return sum
}

// pending returns the units of a cell that are asked for and not answered.
func (v *view) pending(cell int64) int64 {
	var sum int64
	for _, d := range v.dealings {
		sum += d.at(cell).pending
	}
	return sum
}

// pendingBurst is the same of tokens.
func (v *view) pendingBurst(cell int64) int64 {
	var sum int64
	for _, d := range v.dealings {
		sum += d.at(cell).burst.pending
	}
	return sum
}

// offers returns what each peer may have for us: rights it holds of ours, and spare rights of its own.
func (m *Machine) offers(now int64, v *view, cell int64) []allocator.Offer {
	offers := make([]allocator.Offer, 0, len(m.peers))
	for i, p := range m.peers {
		d := v.dealing(p.name)
		pos := d.at(cell)
		if p.degraded(now) || pos.pending > 0 && v.wanted == 0 {
			continue
		}
		o := allocator.Offer{Peer: i, Spare: v.spareOf(p.name, d, cell, now)}
		if cell == v.state.Cell && now >= pos.refusedUntil {
			o.Back = pos.row.Lent - pos.row.Regained
		}
		o.Some = now >= pos.refusedUntil && pos.row.Borrowed < v.lendable(p.name)
		offers = append(offers, o)
	}
	return offers
}

// saidSpare returns the units of the current cell that peers said they had left, in hints or answers. One that has said
// nothing, though it is taken to be idle, is left out.
func (m *Machine) saidSpare(now int64, v *view) (sum int64) {
	cell := v.state.Cell
	for _, p := range m.peers {
		d := v.dealing(p.name)
		if _, heardAt := d.together(now); heardAt > 0 || d.at(cell).spareAt > 0 {
			sum += v.spareOf(p.name, d, cell, now)
		}
	}
	return sum
}

// planBurst asks for the tokens that a token bucket will be short of until its cell ends, for then burst rights go home.
func (m *Machine) planBurst(now int64, v *view) {
	if v.Kind != algorithms.TokenBucket || m.noBurst {
		return
	}
	s := now + m.offset
	cell := algorithms.CellAt(s, v.Cell)
	o, _ := v.outlook(cell, s, m.rateNow(now, v))
	lacking := max(allocator.Lacking(o, min(allocator.Horizon, (cell+1)*v.Cell-s), v.state.Share), v.wanted-v.state.Free)
	if v.Home {
		lacking = min(lacking, v.wants(now)-v.state.Free)
	}
	if v.wanted == 0 {
		lacking -= v.pendingBurst(cell)
	}
	offers := make([]allocator.Offer, 0, len(m.peers))
	for i, p := range m.peers {
		d := v.dealing(p.name)
		pos := d.at(cell)
		if p.degraded(now) || pos.burst.pending > 0 && v.wanted == 0 || now < pos.burst.refusedUntil {
			continue
		}
		offers = append(offers, allocator.Offer{Peer: i, Spare: v.spareBurstOf(p.name, d, cell, now)})
	}
	for _, portion := range allocator.Divide(lacking, 0, offers, allocator.PPM, true) {
		p := m.peers[portion.Peer]
		a := v.ask(p.name, cell)
		a.Burst = min(a.Burst+portion.Units, algorithms.MaxUnits)
		if a.burst = portion.Units - v.dealing(p.name).at(cell).burst.pending; a.burst <= 0 {
			continue
		}
		m.put(now, v, p, a)
	}
}

// ask asks a peer for units of a cell: first for those it holds of ours, then for its own.
func (m *Machine) ask(now int64, v *view, p *peer, cell, units int64) {
	pos := v.dealing(p.name).at(cell)
	back := int64(0)
	if cell == v.state.Cell {
		back = max(min(units, pos.row.Lent-pos.row.Regained), 0)
	}
	lent := min(units-back, max(v.borrowable(m.region)-v.borrowed(cell)+pos.pending, 0))
	if back+lent <= 0 || v.wanted > 0 && back+lent <= pos.pending {
		return // nothing, or no more than it was asked for
	}
	a := v.ask(p.name, cell)
	a.Returned += back
	a.Lent = min(a.Lent+lent, algorithms.MaxUnits)
	a.units = max(back+lent-pos.pending, 0)
	m.put(now, v, p, a)
}
