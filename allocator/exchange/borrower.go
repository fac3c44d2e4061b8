package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

// call is a message under way.
type call struct {
	peer string
	sent int64
	asks []ask
}

// ask is one ask of a call, and what it hopes to gain.
type ask struct {
	Ask
	bucket *Bucket
	units  int64
}

// plan asks for what a bucket lacks in this cell and the next, half the gap at a time unless it is in need.
func (m *Machine) plan(now int64, v *view, jitter int64) {
	s := now + m.offset
	cell := algorithms.CellAt(s, v.Window)
	v.roll(cell)
	m.planCell(now, v, cell, jitter)
	if !m.noAdvance {
		m.planCell(now, v, cell+1, jitter)
	}
}

// planInNeed plans at once, but only for a region that denies or is about to.
func (m *Machine) planInNeed(now int64, v *view) {
	s := now + m.offset
	cell := algorithms.CellAt(s, v.Window)
	v.roll(cell)
	if o, _ := v.outlook(cell, s, v.rateNow(now)); v.inNeed(now) || allocator.Exhausted(o, 2*m.farthest(), v.state.Share) {
		m.planCell(now, v, cell, allocator.PPM)
	}
}

// wanted asks at once for what waiting requests lack.
func (m *Machine) wanted(now int64, e Wanted) {
	v := m.view(now, e.Bucket)
	if v == nil {
		m.out.Settled = append(m.out.Settled, Settled{Bucket: e.Bucket.ID})
		return
	}
	m.offset = e.Now - now
	v.observe(e.State, e.Now)
	cell := algorithms.CellAt(e.Now, v.Window)
	v.roll(cell)
	v.wanted, v.wantedUntil, v.wantedGot, v.deniedAt = e.Units, now+2*m.farthest(), false, now
	m.planCell(now, v, cell, allocator.PPM)
	m.settle(v)
}

// settle ends the wait for rights of a bucket when they have come, or when nothing more is on its way.
func (m *Machine) settle(v *view) {
	come := v.state.Share-v.state.Used >= v.wanted
	if v.wanted > 0 && (come || v.pending(v.state.Cell) == 0) {
		v.wanted = 0
		m.out.Settled = append(m.out.Settled, Settled{Bucket: v.ID, Come: come || v.wantedGot})
	}
}

// farthest returns the longest round trip to expect.
func (m *Machine) farthest() int64 { return m.grace() - Interval }

// lead is how long before a cell opens its rights are asked for: late, for what was promised for a cell stays
// promised through a cut, yet in time to ask twice.
func (m *Machine) lead() int64 { return 2 * m.grace() }

// planCell asks the peers that may have rights of a cell for what is short of the plan's target.
func (m *Machine) planCell(now int64, v *view, cell, jitter int64) {
	s := now + m.offset
	share := v.share(cell)
	o, opens := v.outlook(cell, s, v.rateNow(now))
	if opens > m.lead() {
		return
	}
	inNeed := v.inNeed(now) || allocator.Exhausted(o, max(2*m.farthest()+Interval-opens, 0), share)
	var wanted int64
	if opens == 0 {
		wanted = v.wanted
	}
	if o.Total()+wanted <= share {
		return
	}
	held := share + v.pending(cell)
	short := allocator.Short(o, opens, m.target(now, v, cell, o.Total()), held)
	short = max(short, min(o.Used+wanted, v.entitlement()+v.borrowable(m.region))-held)
	units := allocator.Move(short, allocator.Quantum(v.Limit), jitter, inNeed)
	if units <= 0 {
		return
	}
	for _, p := range allocator.Divide(units, m.offers(now, v, cell), jitter, inNeed) {
		m.ask(now, v, m.peers[p.Peer], cell, p.Units)
	}
}

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
		demand := v.expects(v.dealing(p.name), cell, now+m.offset, now)
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

// offers returns what each peer may have for us: rights it holds of ours, and spare rights of its own.
func (m *Machine) offers(now int64, v *view, cell int64) []allocator.Offer {
	offers := make([]allocator.Offer, 0, len(m.peers))
	for i, p := range m.peers {
		d := v.dealing(p.name)
		pos := d.at(cell)
		if p.degraded(now) || pos.pending > 0 {
			continue
		}
		o := allocator.Offer{Peer: i, Spare: v.spareOf(p.name, d, cell, now)}
		if cell == v.state.Cell && now >= pos.refusedUntil {
			o.Back = pos.row.Lent - pos.row.Regained
		}
		if o.Back+o.Spare > 0 {
			offers = append(offers, o)
		}
	}
	return offers
}

// ask puts an ask into this step's message to a peer.
func (m *Machine) ask(now int64, v *view, p *peer, cell, units int64) {
	pos := v.dealing(p.name).at(cell)
	a := ask{bucket: v.Bucket, units: units, Ask: Ask{Bucket: v.ID, Cell: cell,
		Returned: pos.row.Regained, Lent: pos.row.Borrowed}}
	if cell == v.state.Cell {
		back := max(min(units, pos.row.Lent-pos.row.Regained), 0)
		a.Returned += back
		units -= back
	}
	asked := units
	units = min(units, max(v.borrowable(m.region)-v.borrowed(cell), 0))
	a.units -= asked - units
	if a.units == 0 {
		return
	}
	a.Lent = min(a.Lent+units, algorithms.MaxUnits)
	i := m.call(now, p)
	if i < 0 {
		m.stats.Dropped++
		return
	}
	out := &m.out.Calls[i]
	out.Message.Asks = append(out.Message.Asks, a.Ask)
	c := m.calls[out.ID]
	c.asks = append(c.asks, a)
	pos.pending += a.units
	m.stats.Asks++
}

// call returns the index of this step's call to a peer with room for an ask, or -1 if too many are under way.
func (m *Machine) call(now int64, p *peer) int {
	for i, out := range m.out.Calls {
		if out.Peer == p.name && len(out.Message.Asks) < MostAsks {
			return i
		}
	}
	if p.underway >= MostCalls {
		return -1
	}
	m.lastCall++
	p.underway++
	p.called = now
	m.calls[m.lastCall] = &call{peer: p.name, sent: now}
	m.out.Calls = append(m.out.Calls, Call{ID: m.lastCall, Peer: p.name, Timeout: p.timeout(), Message: Message{
		From: m.region, Node: m.node, Generation: m.generation, Epoch: m.epoch}})
	return len(m.out.Calls) - 1
}

// finish takes a call off the list; nil if it is not there, or its peer is of no document any more.
func (m *Machine) finish(id uint64) (*call, *peer) {
	c := m.calls[id]
	if c == nil {
		return nil, nil
	}
	delete(m.calls, id)
	p := m.peer(c.peer)
	if p == nil {
		return nil, nil
	}
	p.underway--
	for _, a := range c.asks {
		if v := m.views[a.Bucket]; v != nil {
			pos := v.dealing(c.peer).at(a.Cell)
			pos.pending = max(pos.pending-a.units, 0)
		}
	}
	return c, p
}

// unanswered gives a call up: what it asked for may be asked for again, by the same values.
func (m *Machine) unanswered(now int64, e Unanswered) {
	c, _ := m.finish(e.ID)
	if c == nil {
		return
	}
	m.stats.Unanswered++
	for _, a := range c.asks {
		if v := m.views[a.Bucket]; v != nil {
			v.dealing(c.peer).at(a.Cell).refusedUntil = now + Interval
			m.settle(v)
		}
	}
}

// answered takes in the grants of a reply.
func (m *Machine) answered(now int64, e Answered) {
	c, p := m.finish(e.ID)
	if c == nil {
		return
	}
	if e.Reply.From != c.peer || len(e.Reply.Grants) != len(c.asks) {
		m.stats.Implausible++
		return
	}
	p.answeredCall(c.sent, now)
	for i, g := range e.Reply.Grants {
		m.granted(now, p, c.asks[i], g, e.Reply)
		if v := m.views[c.asks[i].Bucket]; v != nil {
			m.settle(v)
		}
	}
}

// granted credits what a grant says beyond what is known. A row counts only if it was written for the generation
// our store has now, under our documents, for the cell asked about, and within what the lender may lend at all.
func (m *Machine) granted(now int64, p *peer, a ask, g Grant, r Reply) {
	v := m.views[a.Bucket]
	if v == nil {
		return
	}
	pos := v.dealing(p.name).at(a.Cell)
	if g.Refusal == NotRefused && (g.Cell != a.Cell || g.Lent < 0 || g.Returned < 0 ||
		g.Lent > algorithms.MaxUnits || g.Returned > algorithms.MaxUnits) {
		m.stats.Implausible++
		return
	}
	gained := max(g.Lent-pos.row.Borrowed, 0) + max(g.Returned-pos.row.Regained, 0)
	if g.Refusal != NotRefused || gained == 0 {
		m.stats.AsksRefused++
		pos.refusedUntil = now + min(max(g.Retry, 0), longestRetry)
		pos.spare, pos.spareAt = 0, now
		return
	}
	pos.spare, pos.spareAt = min(max(g.Spare, 0), v.Limit), now
	if r.ForGeneration != m.generation || r.Epoch != m.epoch {
		return
	}
	pos.pending += gained // until the store has it
	m.out.Credits = append(m.out.Credits, Credit{Bucket: v.Bucket, Peer: p.name, Generation: r.Generation,
		Cell: a.Cell, Lent: g.Lent, Returned: g.Returned, Most: v.lendable(p.name), Gain: gained})
}

// credited brings the view up to what the store holds now.
func (m *Machine) credited(now int64, e Credited) {
	v := m.views[e.Credit.Bucket.ID]
	if v == nil {
		return
	}
	pos := v.dealing(e.Credit.Peer).at(e.Credit.Cell)
	pos.pending = max(pos.pending-e.Credit.Gain, 0)
	if e.Result.Status != algorithms.StatusOK {
		pos.refusedUntil = now + longestRetry
		if e.Result.Status == algorithms.StatusImplausible {
			m.stats.Implausible++
		}
		m.settle(v)
		return
	}
	m.offset = e.Result.Now - now
	v.roll(e.Result.Cell)
	v.setShare(e.Credit.Cell, e.Result.Share, e.Result.Now)
	v.wantedGot = v.wantedGot || e.Credit.Cell == v.state.Cell
	m.stats.UnitsBorrowed += max(e.Result.Borrowed-pos.row.Borrowed, 0)
	m.stats.UnitsRegained += max(e.Result.Regained-pos.row.Regained, 0)
	pos.row.take(e.Result.Row)
	m.settle(v)
}
