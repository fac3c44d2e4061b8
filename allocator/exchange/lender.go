package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// serving is a peer's message between Asked and the reply.
type serving struct {
	from    string
	reply   Reply
	asks    []Ask
	buckets []*Bucket
	lends   []int // for each Lend effect, the index of its ask
}

// onAsked refuses asks that cannot be right and has the store debit the others.
func (m *Machine) onAsked(now quantity.NodeTime, e Asked) {
	m.told(e.Message.From, e.Message.Documents)
	s := &serving{from: e.Message.From, asks: e.Message.Asks, buckets: e.Buckets, reply: Reply{
		From: m.region, Generation: m.generation, ForGeneration: e.Message.Generation,
		Grants: make([]Grant, len(e.Message.Asks)),
	}}
	from := m.peer(e.Message.From)
	believed := from != nil && from.believes(m, now, e.Message.Generation)
	if believed {
		from.noteShown(e.Message.Generation, e.Message.Shown)
	}
	for i, a := range e.Message.Asks {
		g := &s.reply.Grants[i]
		g.Cell = a.Cell
		if g.Refusal = m.refuse(now, e, i, believed); g.Refusal != NotRefused {
			g.Retry = m.pause(g.Refusal, e.Buckets[i], e.Message.Asks[i])
			m.countRefusal(g.Refusal)
			if g.Refusal == RefusedImplausible {
				m.stats.Implausible++
			}
			continue
		}
		m.out.Lend = append(m.out.Lend, m.lend(now, e, i))
		s.lends = append(s.lends, i)
	}
	if len(s.lends) == 0 {
		m.out.Replies = append(m.out.Replies, Answer{ID: e.ID, Reply: s.reply})
		return
	}
	m.serving[e.ID] = s
}

// refuse returns why ask i is not considered, or NotRefused. believed reports whether the asker's
// generation is believed.
func (m *Machine) refuse(now quantity.NodeTime, e Asked, i int, believed bool) Refusal {
	from, b, a := m.peer(e.Message.From), e.Buckets[i], e.Message.Asks[i]
	switch {
	case m.epoch == "":
		return RefusedTerms
	case from == nil || b == nil:
		return RefusedUnknown
	case a.Agreed != b.Agreed:
		return RefusedTerms
	case !plausible(a.Lent, a.Returned, a.Burst, a.Owed, a.Large) || a.Cell < 0 ||
		a.Cell > b.Cells().At(maxTime):
		return RefusedImplausible
	case !believed:
		return RefusedImplausible
	case m.journalFailed || m.fence > m.generation:
		return RefusedStore
	case b.Epoch != m.epoch, // found before the documents changed
		b.ends(a.Cell):
		return RefusedTerms
	case m.noLending || from.degraded(now):
		// The peer does not answer our pings, so it may not hear our reply either. Rights lent now
		// would be lost to both regions.
		return RefusedUnheard
	}
	return NotRefused
}

// ends reports whether nothing of a cell may be lent any more, because the limit is gone.
func (b *Bucket) ends(cell quantity.Cell) bool {
	return b.LendsBefore > 0 && b.Cells().Opens(cell) >= b.LendsBefore
}

// soon is after how long a borrower may ask again that was refused because documents have just been
// opened.
const soon = Interval / 4

// pause returns after how long it may help to ask again.
func (m *Machine) pause(why Refusal, b *Bucket, a Ask) int64 {
	switch {
	case why == RefusedUnheard:
		return Interval // the answer to our next ping may end the refusal
	case why == RefusedTerms && b != nil && a.Agreed == b.Agreed && !b.ends(a.Cell):
		return soon
	}
	return allocator.MaxRetry
}

// pauseAfter returns after how long an ask that the store refused may be tried again. If the store
// was opened anew or under other documents, that is known soon.
func pauseAfter(s algorithms.Status) int64 {
	if s == algorithms.StatusUnknown {
		return soon
	}
	return allocator.MaxRetry
}

// countRefusal counts an ask that was refused.
func (m *Machine) countRefusal(why Refusal) {
	m.stats.Refusals++
	m.stats.RefusedHere[why]++
}

// plausible reports whether all amounts are between 0 and algorithms.MaxUnits.
func plausible(units ...quantity.Units) bool {
	for _, n := range units {
		if n < 0 || n > algorithms.MaxUnits {
			return false
		}
	}
	return true
}

// lend turns an ask into a debit, with the units that this region keeps for itself and for other
// peers.
func (m *Machine) lend(now quantity.NodeTime, e Asked, i int) Lend {
	b, a := e.Buckets[i], e.Message.Asks[i]
	l := Lend{ID: e.ID, Bucket: b, Generation: m.generation,
		Debit: algorithms.Debit{Peer: e.Message.From, Cell: a.Cell, Returned: a.Returned, Lent: a.Lent,
			Burst: a.Burst}}
	v := m.view(now, b)
	if v == nil { // no room to track its demand: keep everything
		l.Kept, l.KeptBurst = b.Limit, algorithms.MaxUnits
		return l
	}
	v.askedAt = now
	s := m.storeTime(now)
	v.roll(b.Cells().At(s))
	rate := m.rate(now, v)
	if v.frame.Sliding { // margin covers what may come beyond the mean
		rate = m.likely(now, v)
	}
	o, opens := v.outlook(a.Cell, s, rate)
	counted := o.Used
	if opens > 0 {
		counted = 0 // nothing of the cell is used before it opens
	}
	o.Used += m.margin(now, v, a.Cell, o)
	l.Kept = allocator.Kept(o, counted, v.entitlement(), m.grace(), m.reserved(now, v, a.Cell, o,
		e.Message.From))
	if opens == 0 && !m.noTail && v.frame.TailLeft(o) {
		l.Kept = 0
	}
	l.Cap = v.own.Lendable
	if d := v.dealing(e.Message.From); a.Large > 0 && a.Lent > v.weighs(d, a.Cell) {
		l.Cap -= v.weighElsewhere(d, a.Cell)
	}
	l.KeptBurst = allocator.KeptBurst(o, v.state.Share, m.grace())
	wants := m.keepsLarge(now, v, e.Message.From, a)
	switch {
	case v.frame.Bucket:
		l.KeptBurst = max(l.KeptBurst, wants)
	case v.frame.Sliding && max(wants, a.Large) > 0:
		// What the peer was lent weighs here whether it is lent on or not: keep no more than there is.
		l.Kept = min(max(l.Kept, wants), v.there(a.Cell))
	default:
		l.Kept = max(l.Kept, wants)
	}
	row := &v.dealing(e.Message.From).at(a.Cell).row
	if v.frame.Bucket {
		l.KeptBurst = keptOwed(l.KeptBurst, a.Burst-row.BurstLent, a.Owed, v.state.Free)
	} else if opens == 0 {
		l.Kept = keptOwed(l.Kept, a.Lent-row.Lent+a.Returned-row.Returned, a.Owed, v.state.Free)
	}
	if v.Home { // all of it is lent to whoever asks first, except what requests here wait for
		l.Kept, l.KeptBurst = v.wanted, v.wanted
	}
	l.CapBurst = v.own.LendableBurst
	m.lendInTime(now, v, e.Message.From, a, &l.Debit)
	return l
}

// margin returns how many units of a cell this region keeps beyond what it expects to use.
func (m *Machine) margin(now quantity.NodeTime, v *view, cell quantity.Cell,
	o allocator.Outlook) quantity.Units {
	return v.frame.Margin(o, v.demand.Spread(), m.slack(now, v, cell, o), int64(len(m.peers)+1))
}

// slack returns how many units of a cell all regions together are known to leave.
func (m *Machine) slack(now quantity.NodeTime, v *view, cell quantity.Cell, o allocator.Outlook) quantity.Units {
	slack := v.Limit - o.Total()
	for i := range v.dealings {
		slack -= v.expects(&v.dealings[i], cell, now)
	}
	return slack
}

// reserved returns how many units of a cell regions other than the asker lack, by their hints. It
// returns 0 if no time is left in the cell for them to ask.
func (m *Machine) reserved(now quantity.NodeTime, v *view, cell quantity.Cell, o allocator.Outlook,
	asker string) quantity.Units {
	if !v.frame.KeepsForOthers(o) {
		return 0
	}
	return m.othersWant(now, v, cell, asker)
}

// othersWant returns how many units of a cell regions other than the asker lack, by their hints.
func (m *Machine) othersWant(now quantity.NodeTime, v *view, cell quantity.Cell,
	asker string) quantity.Units {
	var want quantity.Units
	for i, p := range m.peers {
		d := &v.dealings[i]
		h, at := d.together(now)
		if p.name == asker || at == 0 {
			continue
		}
		holds := d.part.Entitlement
		if cell == h.Cell {
			holds = h.Share
		}
		want += allocator.Unmet(v.expects(d, cell, now), holds)
	}
	return want
}

// onLent fills in the grants. Before the reply leaves, the journal must hold every row that the
// reply announces. That includes rows that this debit did not raise: an earlier debit may have
// raised them, and they may not be durable yet.
func (m *Machine) onLent(now quantity.NodeTime, e Lent) {
	s := m.serving[e.ID]
	if s == nil || len(e.Given) != len(s.lends) {
		return
	}
	var rows []Row
	for n, given := range e.Given {
		i := s.lends[n]
		g, b := &s.reply.Grants[i], s.buckets[i]
		if given.Status != algorithms.StatusOK {
			g.Refusal, g.Retry = refusalOf(given.Status), pauseAfter(given.Status)
			m.countRefusal(g.Refusal)
			continue
		}
		m.noteStoreTime(given.Now, now)
		s.reply.At = max(s.reply.At, given.Now)
		g.Lent, g.Returned, g.Spare = given.Row.Lent, given.Row.Returned, given.Spare
		g.Burst, g.SpareBurst = given.Row.BurstLent, given.SpareBurst
		m.noteLent(b, s.from, g, given)
		g.Retry = m.retryAfter(now, b, g.Cell, given)
		if v, a := m.views[b.ID], s.asks[i]; v != nil && a.Lent > g.Lent && m.regainFor(now, v, s.from, a, a.Lent-g.Lent) {
			g.Retry = min(g.Retry, m.grace()) // when it may have come
		}
		row := algorithms.PeerRow{Cell: g.Cell, Peer: s.from, Row: given.Row}
		if gave, ok := b.Gave(m.region, m.generation, row); ok {
			rows = append(rows, gave)
		}
	}
	if len(rows) > 0 {
		m.out.Record = append(m.out.Record, Record{ID: e.ID, Rows: rows})
		return
	}
	m.reply(e.ID, s)
}

// retryAfter returns after how many microseconds it may help to ask this region again for a cell.
// It has just given all that it would of that cell.
func (m *Machine) retryAfter(now quantity.NodeTime, b *Bucket, cell quantity.Cell,
	given algorithms.Given) int64 {
	v := m.views[b.ID]
	e := allocator.Emptied{Limit: b.Limit, Left: b.Cells().Opens(cell + 1).Sub(given.Now),
		Keeps: given.State.Free > 0}
	e.Unseen = v == nil || cell > v.state.Cell
	if !e.Unseen {
		e.Outlook, _ = v.outlook(cell, given.Now, m.rate(now, v))
	}
	return b.frameOf().RetryAfter(e)
}

// noteLent updates the view of a bucket to what the store has debited.
func (m *Machine) noteLent(b *Bucket, peer string, g *Grant, given algorithms.Given) {
	v := m.views[b.ID]
	if v == nil {
		return
	}
	v.observe(given.State, given.Now)
	pos := v.dealing(peer).at(g.Cell)
	m.noteMoved(b.Name, peer, Moved{Lent: max(g.Lent-pos.row.Lent, 0),
		Returned:  max(g.Returned-pos.row.Returned, 0),
		BurstLent: max(g.Burst-pos.row.BurstLent, 0)})
	pos.raise(given.Row)
}

// onRecorded lets the reply go if its rows are durable, and the store remembers that they are.
// Otherwise it refuses every ask of the message that the store had debited, because a row that is
// not durable must not be announced. If the journal failed, this node lends nothing from then on
// until it is started anew.
func (m *Machine) onRecorded(e Recorded) {
	s := m.serving[e.ID]
	if s == nil {
		return
	}
	if !e.OK {
		m.journalFailed = true
	}
	if !e.OK || e.Unnoted {
		for _, i := range s.lends {
			if s.reply.Grants[i].Refusal == NotRefused {
				m.countRefusal(RefusedStore)
			}
			s.reply.Grants[i] = Grant{Refusal: RefusedStore, Cell: s.reply.Grants[i].Cell,
				Retry: allocator.MaxRetry}
		}
	}
	m.reply(e.ID, s)
}

func (m *Machine) reply(id uint64, s *serving) {
	delete(m.serving, id)
	m.out.Replies = append(m.out.Replies, Answer{ID: id, Reply: s.reply})
}

func refusalOf(s algorithms.Status) Refusal {
	if s == algorithms.StatusFinished || s == algorithms.StatusRecovering {
		return RefusedFinished
	}
	return RefusedStore
}
