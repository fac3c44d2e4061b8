package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// call is a message that was sent to a peer and not answered yet.
type call struct {
	peer string
	to   *peer
	sent quantity.NodeTime
	asks []Ask // in the order of the message
	gain []gain
}

// gain is what an ask may bring: units, and tokens (burst).
type gain struct{ units, burst quantity.Units }

// askOf returns an ask that names the sums of the rows with a peer as this node knows them. It asks
// for nothing until the caller raises a sum.
func (m *Machine) askOf(now quantity.NodeTime, v *view, pos *position) Ask {
	row := &pos.row
	return Ask{Bucket: v.ID, Agreed: v.Agreed, Cell: pos.cell, Returned: row.Regained, Lent: row.Borrowed,
		Burst: row.BurstBorrowed, Owed: v.covers(pos.cell), Large: m.wantsLarge(now, v)}
}

// put adds an ask to this step's message to a peer. mayAsk must have allowed it.
func (m *Machine) put(now quantity.NodeTime, p *peer, pos *position, a Ask, hoped gain) {
	out := &m.out.Calls[m.call(now, p)]
	c := m.calls[out.ID]
	c.asks, c.gain = append(c.asks, a), append(c.gain, hoped)
	out.Message.Asks = c.asks
	pos.pending.units += hoped.units
	pos.pending.burst += hoped.burst
	pos.askedAt = now
	m.stats.Asks++
}

// call returns the index in Effects.Calls of a call to the peer with room for an ask. It makes a
// new call if this step has none. It returns -1 if MaxCalls calls are under way.
func (m *Machine) call(now quantity.NodeTime, p *peer) int {
	if m.isOpen(p) {
		return p.open
	}
	if p.underway >= MaxCalls {
		return -1
	}
	m.lastCall++
	p.underway++
	p.called = now
	c := &call{peer: p.name, to: p, sent: now}
	// This step has filled a message already, so this one will have many asks too.
	if m.isFull(p) {
		c.asks, c.gain = make([]Ask, 0, MaxAsks), make([]gain, 0, MaxAsks)
	}
	m.calls[m.lastCall] = c
	m.out.Calls = append(m.out.Calls, Call{ID: m.lastCall, Peer: p.name, Timeout: p.timeout(),
		Message: Message{
			From: m.region, Node: m.node, Generation: m.generation, Shown: m.shows(now)}})
	p.open = len(m.out.Calls) - 1
	return p.open
}

// isOpen reports whether this step has a call to the peer with room for an ask.
func (m *Machine) isOpen(p *peer) bool {
	return m.hasCall(p) && len(m.out.Calls[p.open].Message.Asks) < MaxAsks
}

// isFull reports whether this step's call to the peer has no room for an ask.
func (m *Machine) isFull(p *peer) bool {
	return m.hasCall(p) && len(m.out.Calls[p.open].Message.Asks) >= MaxAsks
}

func (m *Machine) hasCall(p *peer) bool {
	return p.open < len(m.out.Calls) && m.out.Calls[p.open].Peer == p.name
}

// finish removes a call from the calls under way and returns it with its peer. It returns nil if
// there is no such call, or if the document no longer names its peer.
func (m *Machine) finish(id uint64) (*call, *peer) {
	c := m.calls[id]
	if c == nil {
		return nil, nil
	}
	delete(m.calls, id)
	c.to.underway--
	p := m.peer(c.peer)
	// The peer left the document, and may have come back. What was asked of it before is forgotten.
	if p != c.to {
		return nil, nil
	}
	for i, a := range c.asks {
		if v := m.views[a.Bucket]; v != nil {
			pos := v.with(p).at(a.Cell)
			pos.pending.units = max(pos.pending.units-c.gain[i].units, 0)
			pos.pending.burst = max(pos.pending.burst-c.gain[i].burst, 0)
		}
	}
	return c, p
}

// onUnanswered gives up a call. A later ask may name the same sums again: the lender then debits
// nothing twice.
func (m *Machine) onUnanswered(now quantity.NodeTime, e Unanswered) {
	c, _ := m.finish(e.ID)
	if c == nil {
		return
	}
	m.stats.Unanswered++
	for i, a := range c.asks {
		if v := m.views[a.Bucket]; v != nil {
			v.dealing(c.peer).at(a.Cell).noteRefusal(c.gain[i], now+Interval)
			m.settle(v)
		}
	}
}

// onAnswered takes in the grants of a reply.
func (m *Machine) onAnswered(now quantity.NodeTime, e Answered) {
	c, p := m.finish(e.ID)
	if c == nil {
		return
	}
	if e.Reply.From != c.peer || len(e.Reply.Grants) != len(c.asks) {
		m.reject(RejectedRegion, len(e.Reply.Grants))
		return
	}
	m.told(c.peer, e.Reply.Documents)
	p.answeredCall(c.sent, now)
	if m.clockKnown && e.Reply.At > 0 && e.Reply.At <= maxTime {
		p.clock.add(e.Reply.At, m.storeTime(now), c.sent, now)
	}
	for i, g := range e.Reply.Grants {
		if g.Refusal != NotRefused {
			m.stats.RefusedByPeers[g.Refusal.known()]++
		}
		m.granted(now, c, p, i, g, e.Reply)
		if v := m.views[c.asks[i].Bucket]; v != nil {
			m.settle(v)
		}
	}
}

// told passes on what a region says of its limits documents.
func (m *Machine) told(region string, documents []Acknowledged) {
	if len(documents) > 0 {
		m.out.Told = append(m.out.Told, Told{Region: region, Documents: documents})
	}
}

// granted has our store credit what a grant announces beyond what is known, if it is to be
// believed.
func (m *Machine) granted(now quantity.NodeTime, c *call, p *peer, i int, g Grant, r Reply) {
	a := c.asks[i]
	v := m.views[a.Bucket]
	if v == nil {
		return
	}
	pos := v.with(p).at(a.Cell)
	if g.Refusal == NotRefused && (g.Cell != a.Cell || !plausible(g.Lent, g.Returned, g.Burst)) ||
		r.At < 0 || r.At > maxTime {
		m.reject(RejectedImplausible, 1)
		return
	}
	hoped, brings := c.gain[i], pos.brings(g)
	refused, spare := v.refused(g, hoped, brings)
	if hoped.units > 0 {
		pos.spare, pos.spareAt = spare, now
	}
	if g.Refusal == NotRefused && v.frame.LendsBurst {
		d := v.with(p)
		d.burst, d.burstAt = min(max(g.SpareBurst, 0), algorithms.MaxUnits), now
	}
	pos.pace = min(max(g.Retry, 0), allocator.MaxRetry)
	from := now
	// It is asked again while answers are under way. The lender's pace counts from one ask to the
	// next.
	if v.keepsAsking() {
		from = c.sent
	}
	pos.noteRefusal(refused, from.Add(pos.pace))
	if brings == (gain{}) {
		m.stats.AsksRefused++
		return
	}
	if why, rejected := m.rejection(now, v, p, a, r); rejected {
		m.reject(why, 1)
		return
	}
	pos.pending.units += brings.units // until the store has credited it
	pos.pending.burst += brings.burst
	pos.announced.raise(g.Lent, g.Returned, g.Burst)
	part := &v.dealings[p.index].part
	m.out.Credits = append(m.out.Credits, Credit{Bucket: v.Bucket, ForGeneration: r.ForGeneration,
		Gain: brings.units, GainBurst: brings.burst,
		Announcement: algorithms.Announcement{Peer: p.name, PeerGeneration: r.Generation, Cell: a.Cell,
			Lent: g.Lent, Returned: g.Returned, Most: part.Lendable,
			Burst: g.Burst, MostBurst: part.LendableBurst, At: r.At}})
}

// brings returns by how much a grant is more than what its peer announced before.
func (pos *position) brings(g Grant) gain {
	if g.Refusal != NotRefused {
		return gain{}
	}
	return gain{units: max(g.Lent-pos.announced.borrowed, 0) + max(g.Returned-pos.announced.regained, 0),
		burst: max(g.Burst-pos.announced.burst, 0)}
}

// refused returns what was hoped for of a grant and will not be had for a while, and how many units
// its peer has left.
func (v *view) refused(g Grant, hoped, brings gain) (refused gain, spare quantity.Units) {
	if g.Refusal == NotRefused {
		spare = min(max(g.Spare, 0), v.Limit)
	}
	// A lender that gives a part and has no spare left gave all it has.
	if brings.units == 0 || v.asksOnce() && brings.units < hoped.units && spare == 0 {
		refused.units, spare = hoped.units, 0
	}
	if brings.burst == 0 {
		refused.burst = hoped.burst
	}
	return refused, spare
}

// rejection returns why a row that a peer announces is not credited. It was written for another
// generation of our store, or by one of the lender's that is not believed, or under other terms.
// The store checks that the row is no more than the lender may lend (Announcement.Most).
func (m *Machine) rejection(now quantity.NodeTime, v *view, p *peer, a Ask, r Reply) (why Rejection, rejected bool) {
	switch {
	case r.ForGeneration != m.generation, !p.believes(m, now, r.Generation):
		return RejectedGeneration, true
	case a.Agreed != v.Agreed:
		return RejectedTerms, true
	}
	return 0, false
}

// noteRefusal notes that the peer gives nothing more before the node time until: no units if of has
// units, no tokens if of has burst.
func (pos *position) noteRefusal(of gain, until quantity.NodeTime) {
	if of.units > 0 {
		pos.refusedUntil = until
	}
	if of.burst > 0 {
		pos.burstRefusedUntil = until
	}
}

// onCredited updates the view to what the store holds after a credit.
func (m *Machine) onCredited(now quantity.NodeTime, e Credited) {
	c := e.Credit
	v := m.views[c.Bucket.ID]
	if v == nil {
		return
	}
	pos := v.dealing(c.Peer).at(c.Cell)
	pos.pending.units = max(pos.pending.units-c.Gain, 0)
	pos.pending.burst = max(pos.pending.burst-c.GainBurst, 0)
	if e.Result.Status == algorithms.StatusEarly && m.deferCredit(now, v, c, e.Result.Now) {
		m.settle(v)
		return
	}
	if e.Result.Status != algorithms.StatusOK {
		pos.forgetAnnounced()
		pos.noteRefusal(gain{units: c.Gain, burst: c.GainBurst}, now.Add(pauseAfter(e.Result.Status)))
		m.rejectedBy(e.Result.Status)
		m.settle(v)
		return
	}
	m.noteStoreTime(e.Result.Now, now)
	v.observe(e.Result.State, e.Result.Now)
	row := e.Result.Row
	v.wantedGot = v.wantedGot || c.Cell == v.state.Cell
	moved := Moved{Borrowed: max(row.Borrowed-pos.row.Borrowed, 0),
		Regained:      max(row.Regained-pos.row.Regained, 0),
		BurstBorrowed: max(row.BurstBorrowed-pos.row.BurstBorrowed, 0)}
	m.noteMoved(v.Name, c.Peer, moved)
	pos.raise(row)
	if c.Cell == v.state.Cell && moved != (Moved{}) {
		v.lacks.since = now
	}
	if row.Borrowed < c.Lent || row.Regained < c.Returned || row.BurstBorrowed < c.Burst {
		// The store did not credit all of it. It may do so when the peer announces it again.
		pos.forgetAnnounced()
	}
	m.settle(v)
}
