package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// plan asks peers for what the bucket lacks in the current cell and in the next. jitter is parts
// per million.
func (m *Machine) plan(now quantity.NodeTime, v *view, jitter quantity.PPM) {
	s := m.storeTime(now)
	cell := v.Cells().At(s)
	v.roll(cell)
	v.pauseDebt(now)
	m.planCell(now, v, cell, jitter)
	if !m.noAdvance {
		m.planCell(now, v, cell+1, jitter)
	}
	m.planBurst(now, v)
	v.askedForDebt(now)
}

// planInNeed plans a bucket between two ticks, but only if this region has denied requests lately
// or expects to deny soon.
func (m *Machine) planInNeed(now quantity.NodeTime, v *view) {
	s := m.storeTime(now)
	cell := v.Cells().At(s)
	v.roll(cell)
	v.pauseDebt(now)
	if o, _ := v.outlook(cell, s, m.rateNow(now, v)); v.inNeed(now) ||
		allocator.RunsOut(o, m.farthest(), v.state.Share) {
		m.planCell(now, v, cell, allocator.PPM)
		// Units that count now, or wait in a queue, still count when the next cell opens. So the
		// next cell will be short too.
		if !v.frame.CellsApart && !m.noAdvance {
			m.planCell(now, v, cell+1, allocator.PPM)
		}
		m.planBurst(now, v)
		v.askedForDebt(now)
	}
}

// onWanted asks at once for the units that waiting requests lack.
func (m *Machine) onWanted(now quantity.NodeTime, e Wanted) {
	v := m.view(now, e.Bucket)
	if v == nil {
		m.out.Settled = append(m.out.Settled, Settled{Bucket: e.Bucket.ID})
		return
	}
	m.noteStoreTime(e.Now, now)
	v.observe(e.State, e.Now)
	cell := v.Cells().At(e.Now)
	v.roll(cell)
	v.wanted, v.wantedUntil, v.wantedGot, v.deniedAt = e.Units,
		now.Add(allocator.Patience(m.farthest())), false, now
	v.pauseDebt(now)
	m.planCell(now, v, cell, allocator.PPM)
	m.planBurst(now, v)
	m.settle(v)
}

// settle ends the wait of a bucket's requests if the rights have come, or if no ask is under way
// any more.
func (m *Machine) settle(v *view) {
	cell := v.state.Cell
	come := v.state.Free >= v.wanted
	if v.wanted > 0 && (come || v.pending(cell) == gain{}) {
		v.wanted = 0
		if v.Home && come {
			v.deniedAt = 0 // the region has what it needs: fetch no further unit
		}
		m.out.Settled = append(m.out.Settled, Settled{Bucket: v.ID, RetryHelps: come ||
			v.wantedGot})
	}
}

// lack is what is known of a cell that may lack rights.
type lack struct {
	cell    quantity.Cell
	at      quantity.StoreTime
	outlook allocator.Outlook
	opens   int64          // microseconds until the cell opens; 0: it is open
	waiting quantity.Units // units that requests wait for
	large   quantity.Units // the large cost that is asked for whole
	// inNeed says that this region has denied requests lately, or will before the answer to a later
	// ask could arrive.
	inNeed bool
}

// planCell asks peers for rights of a cell: whether it lacks any (lackOf), how many (short), and of
// whom to ask them (offers, portions).
func (m *Machine) planCell(now quantity.NodeTime, v *view, cell quantity.Cell,
	jitter quantity.PPM) {
	l, lacks := m.lackOf(now, v, cell)
	if !lacks {
		return
	}
	short, room := m.short(now, v, l)
	if short+room <= 0 || !v.asksOnce() && m.crowdedOut(now, v) {
		return
	}
	pending := v.pending(cell).units
	anew := allocator.AskAnew(short, pending, l.waiting, l.inNeed) || l.large > 0 && short > pending
	if anew { // the pending ask was sent when less was known to be lacking
		pending = 0
	}
	offers := m.offers(now, v, cell, anew)
	offered := allocator.Offered(offers)
	if l.inNeed && v.keepsAsking() && offered < short && l.large == 0 {
		m.gather(now, v, cell, short)
		return
	}
	units := allocator.Move(allocator.WithRoom(short, room, offered)-pending,
		allocator.Quantum(v.Limit), jitter, l.inNeed)
	m.askEach(now, v, cell, m.portions(v, l, units, offers, jitter))
}

// lackOf reports whether rights of a cell are to be asked for now.
//
// A bucket that asks once (asksOnce) asks for everything, and only when the rights at hand would be
// used up before the answer to a later ask could arrive: the later it asks, the better it knows its
// need. For other buckets rights that arrive late are lost, so they ask for half of the gap at each
// tick. In home mode a region borrows unit by unit, so nothing ahead of a cell, and of a token bucket
// tokens (planBurst) rather than refill.
func (m *Machine) lackOf(now quantity.NodeTime, v *view, cell quantity.Cell) (l lack, lacks bool) {
	l.cell, l.at = cell, m.storeTime(now)
	l.outlook, l.opens = v.outlook(cell, l.at, m.rateNow(now, v))
	if v.isShut(max(l.at, v.Cells().Opens(cell))) || l.opens > v.frame.Lead(m.farthest()) ||
		v.Home && (l.opens > 0 || l.outlook.Steady) {
		return l, false
	}
	share := v.share(cell)
	if !l.outlook.Steady { // of buckets tokens are asked for; see planBurst
		l.large = m.asksLarge(now, v, cell)
	}
	l.inNeed = v.inNeed(now) || l.large > 0 ||
		allocator.Exhausted(l.outlook, allocator.AskWithin(m.farthest(), l.opens), share)
	if l.opens == 0 && !l.outlook.Steady {
		l.waiting = v.wanted
	}
	wants := max(l.outlook.Total()+l.waiting, l.outlook.Used+l.large)
	return l, wants > share && (l.inNeed || !v.asksOnce())
}

// short returns how many units are lacking, and how many more to ask for where peers have them; see
// allocator.Need.
func (m *Machine) short(now quantity.NodeTime, v *view, l lack) (short, room quantity.Units) {
	o := l.outlook
	if !v.frame.Bucket {
		o, _ = v.outlook(l.cell, l.at, m.likely(now, v))
	}
	n := allocator.Need{Frame: v.frame, Outlook: o, Opens: l.opens, Own: v.own, Share: v.share(l.cell),
		Waiting: l.waiting, Large: l.large, InNeed: v.inNeed(now), Home: v.Home,
		HomeWaits: max(v.wants(now), l.large)}
	if n.Spread = v.demand.Spread(); n.Spread > 1 {
		n.Slack = m.slack(now, v, l.cell, o) / quantity.Units(len(m.peers)+1)
	}
	if l.waiting == 0 {
		n.Target = m.target(now, v, l.cell, max(o.Total(), o.Used+l.large))
	}
	return n.Short()
}

// portions returns whom to ask for units, and for how many each.
func (m *Machine) portions(v *view, l lack, units quantity.Units, offers []allocator.Offer,
	jitter quantity.PPM) []allocator.Portion {
	if v.asksOnce() && l.waiting+l.large == 0 { // while requests wait there is no time to ask others later
		offers = allocator.Fewest(offers, units)
	}
	tail := quantity.Units(0)
	switch {
	case l.large > 0:
		tail = units
	case !m.noTail:
		tail = v.frame.Tail(units, l.inNeed)
	}
	return m.scratch.Divide(units, tail, offers, jitter, l.inNeed)
}

// askEach asks each peer for its portion, except peers that were already asked for as much.
func (m *Machine) askEach(now quantity.NodeTime, v *view, cell quantity.Cell,
	portions []allocator.Portion) {
	if len(portions) == 0 {
		return
	}
	borrowed := v.borrowed(cell)
	for _, p := range portions {
		if p.Units > v.dealings[p.Peer].at(cell).pending.units {
			borrowed = m.ask(now, v, m.peers[p.Peer], cell, p.Units, borrowed)
		}
	}
}

// gather asks every peer for an equal part of units, even while answers are under way. Where use
// fades, each lender has a little more to lend at every moment, and a region that waited for each
// answer would always be a round trip late. The lender's last answer says how soon to ask it again
// (position.pace). gather asks it at once if that answer says that it has more, or if a hint from it
// arrived after the last ask, since it may need less now.
func (m *Machine) gather(now quantity.NodeTime, v *view, cell quantity.Cell, units quantity.Units) {
	units = allocator.EachOf(units, len(m.peers))
	var borrowed quantity.Units
	summed := false
	for i, p := range m.peers {
		d := &v.dealings[i]
		pos := d.at(cell)
		_, heardAt := d.together(now)
		more := v.wanted > 0 && units > pos.pending.units
		due := now >= pos.refusedUntil && now.Sub(pos.askedAt) >= pos.pace || heardAt > pos.askedAt
		hasMore := pos.spare > 0 && pos.spareAt > pos.askedAt && units > pos.pending.units
		if p.degraded(now) || !((more || hasMore) && now >= pos.refusedUntil ||
			due && now.Sub(pos.askedAt) >= v.frame.Pause()) {
			continue
		}
		if !summed {
			borrowed, summed = v.borrowed(cell), true
		}
		borrowed = m.ask(now, v, p, cell, units, borrowed)
	}
}

// borrowed returns how many units of a cell this region has borrowed or asked for, less what it has
// returned.
func (v *view) borrowed(cell quantity.Cell) (sum quantity.Units) {
	for i := range v.dealings {
		sum += v.dealings[i].at(cell).borrowed()
	}
	return sum
}

// borrowed returns the same for one peer. It counts units that the peer announced and our store has
// not credited yet.
func (p *position) borrowed() quantity.Units {
	return max(p.row.Borrowed+p.pending.units, p.announced.borrowed) - p.row.Returned
}

// pending returns what was asked for of a cell and is not answered yet, or announced and not
// credited yet.
func (v *view) pending(cell quantity.Cell) (sum gain) {
	for i := range v.dealings {
		of := &v.dealings[i].at(cell).pending
		sum.units += of.units
		sum.burst += of.burst
	}
	return sum
}

// offers returns what each peer may have for us: rights that it borrowed from us and may give back,
// and spare rights of its own. It leaves out degraded peers. It leaves out peers that have not yet
// answered an ask, unless anew is set.
func (m *Machine) offers(now quantity.NodeTime, v *view, cell quantity.Cell,
	anew bool) []allocator.Offer {
	offers := m.offered[:0]
	for i, p := range m.peers {
		d := &v.dealings[i]
		pos := d.at(cell)
		if p.degraded(now) || pos.pending.units > 0 && !anew {
			continue
		}
		o := allocator.Offer{Peer: i, Spare: v.spareOf(d, cell, now)}
		if cell == v.state.Cell && now >= pos.refusedUntil {
			o.Back = max(pos.out(), 0)
		}
		// While requests wait, a peer with an ask under way does not count: otherwise each waiting
		// request would ask every peer once more.
		o.Some = now >= pos.refusedUntil && pos.lends() < d.part.Lendable &&
			(v.wanted == 0 || pos.pending.units == 0)
		offers = append(offers, o)
	}
	m.offered = offers
	return offers
}

// saidSpare returns how many units of the current cell peers have said that they can spare, in
// hints or answers. A peer that has said nothing does not count here, although the plan assumes
// that it is idle.
func (m *Machine) saidSpare(now quantity.NodeTime, v *view) (sum quantity.Units) {
	cell := v.state.Cell
	for i := range v.dealings {
		d := &v.dealings[i]
		if _, heardAt := d.together(now); heardAt > 0 || d.at(cell).spareAt > 0 {
			sum += v.spareOf(d, cell, now)
		}
	}
	return sum
}

// ask asks a peer for units of a cell: first for rights that the peer borrowed from us, then for
// rights of its own. borrowed is what the bucket has borrowed of the cell (view.borrowed). ask
// returns that sum as it is afterwards, so a caller that asks many peers adds it up once.
func (m *Machine) ask(now quantity.NodeTime, v *view, p *peer, cell quantity.Cell, units,
	borrowed quantity.Units) quantity.Units {
	d := &v.dealings[p.index]
	pos := d.at(cell)
	ours := quantity.Units(0) // rights of ours that the peer may give back
	if cell == v.state.Cell {
		ours = pos.out()
	}
	// What is asked for counts as borrowed: asked for more than it may lend, one peer would leave
	// nothing to be asked of the others.
	units = min(units, ours+max(d.part.Lendable-pos.lends(), 0))
	back, lent := allocator.SplitAsk(units, ours, v.own.Borrowable, borrowed, pos.pending.units)
	if back+lent <= 0 || v.wanted > 0 && back+lent <= pos.pending.units {
		return borrowed // there is nothing to ask for, or the pending ask covers it
	}
	if !m.mayAsk(p) {
		m.wait(now, v, p)
		return borrowed
	}
	a := m.askOf(now, v, pos)
	a.Returned += back
	a.Lent = min(a.Lent+lent, algorithms.MaxUnits)
	hoped := gain{units: max(back+lent-pos.pending.units, 0)}
	borrowed -= pos.borrowed()
	m.put(now, p, pos, a, hoped)
	// Not pos.borrowed(): for a cell that is over, d.at returns a position that is not stored.
	return borrowed + d.at(cell).borrowed()
}
