package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

// longestRetry caps how long a lender with empty hands asks to be left alone.
const longestRetry = allocator.Second

// serving is a peer's message on its way from Asked to Reply.
type serving struct {
	from    string
	reply   Reply
	buckets []*Bucket
	lends   []int // the ask that each Lend effect is for
}

// askedBy refuses what cannot be, and has the store debit the rest.
func (m *Machine) askedBy(now int64, e Asked) {
	s := &serving{from: e.Message.From, buckets: e.Buckets, reply: Reply{
		From: m.region, Generation: m.generation, ForGeneration: e.Message.Generation, Epoch: m.epoch,
		Grants: make([]Grant, len(e.Message.Asks)),
	}}
	for i, a := range e.Message.Asks {
		g := &s.reply.Grants[i]
		g.Cell = a.Cell
		if g.Refusal = m.refuse(now, e, i); g.Refusal != NotRefused {
			g.Retry = longestRetry
			if g.Refusal == RefusedUnheard {
				g.Retry = Interval // our next ping may tell
			}
			m.stats.Refusals++
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

// refuse says why an ask is not looked into.
func (m *Machine) refuse(now int64, e Asked, i int) Refusal {
	from, b, a := m.peer(e.Message.From), e.Buckets[i], e.Message.Asks[i]
	switch {
	case m.epoch == "" || e.Message.Epoch != m.epoch:
		return RefusedEpoch
	case from == nil || b == nil:
		return RefusedUnknown
	case a.Lent < 0 || a.Returned < 0 || a.Lent > algorithms.MaxUnits || a.Returned > algorithms.MaxUnits || a.Cell < 0:
		return RefusedImplausible
	case m.noJournal:
		return RefusedStore
	case b.Epoch != m.epoch:
		return RefusedEpoch
	case m.noLending || from.degraded(now):
		// It hears us no more than our pings: rights sent there would be lost to both.
		return RefusedUnheard
	}
	return NotRefused
}

// lend turns an ask into a debit, less what this region keeps for itself and for others.
func (m *Machine) lend(now int64, e Asked, i int) Lend {
	b, a := e.Buckets[i], e.Message.Asks[i]
	l := Lend{ID: e.ID, Bucket: b, Peer: e.Message.From, Cell: a.Cell, Returned: a.Returned, Lent: a.Lent}
	v := m.view(now, b)
	if v == nil { // no room to know its demand: it keeps everything
		l.Kept = b.Limit
		return l
	}
	v.asked = now
	s := now + m.offset
	v.roll(algorithms.CellAt(s, b.Window))
	o, _ := v.outlook(a.Cell, s, v.demand.Rate(v.Window))
	l.Kept = allocator.Kept(o, v.entitlement(), m.grace(), m.othersWant(now, v, a.Cell, e.Message.From))
	l.Cap = v.lendable(m.region)
	return l
}

// othersWant returns what hints say that regions other than the asker lack of a cell.
func (m *Machine) othersWant(now int64, v *view, cell int64, asker string) int64 {
	var want int64
	for _, p := range m.peers {
		d := v.dealing(p.name)
		if p.name == asker || !d.fresh(now) {
			continue
		}
		holds := v.Entitlements[p.name]
		if cell == d.hint.Cell {
			holds = d.hint.Share
		}
		want += max(v.expects(d, cell, now+m.offset, now)-holds, 0)
	}
	return want
}

// lent fills in the grants and has every row that they announce made durable first: also those that this debit did
// not raise, for another may have, without its row being durable yet.
func (m *Machine) lent(now int64, e Lent) {
	s := m.serving[e.ID]
	if s == nil || len(e.Given) != len(s.lends) {
		return
	}
	var rows []Row
	for n, given := range e.Given {
		i := s.lends[n]
		g, b := &s.reply.Grants[i], s.buckets[i]
		if given.Status != algorithms.StatusOK {
			g.Refusal, g.Retry = refusalOf(given.Status), longestRetry
			m.stats.Refusals++
			continue
		}
		m.offset = given.Now - now
		g.Lent, g.Returned, g.Spare = given.Lent, given.Returned, given.Spare
		g.Retry = min(max((g.Cell+1)*b.Window-given.Now, Interval), longestRetry)
		m.noteLent(b, s.from, g, given)
		if g.Lent > 0 || g.Returned > 0 {
			rows = append(rows, Row{Bucket: b.ID, Peer: s.from, Cell: g.Cell, Lent: g.Lent, Returned: g.Returned,
				Generation: m.generation, Until: (g.Cell + 1) * b.Window})
		}
	}
	if len(rows) > 0 {
		m.out.Record = append(m.out.Record, Record{ID: e.ID, Rows: rows})
		return
	}
	m.reply(e.ID, s)
}

// noteLent brings the view of a bucket up to what the store has debited.
func (m *Machine) noteLent(b *Bucket, peer string, g *Grant, given algorithms.Given) {
	v := m.views[b.ID]
	if v == nil {
		return
	}
	v.roll(given.Cell)
	v.setShare(g.Cell, given.Share, given.Now)
	row := &v.dealing(peer).at(g.Cell).row
	m.stats.UnitsLent += max(g.Lent-row.Lent, 0)
	m.stats.UnitsReturned += max(g.Returned-row.Returned, 0)
	row.take(given.Row)
}

// recorded lets the reply go, or takes everything back out of it: a row that is not durable is not announced.
func (m *Machine) recorded(e Recorded) {
	s := m.serving[e.ID]
	if s == nil {
		return
	}
	if !e.OK {
		m.noJournal = true
		for _, i := range s.lends {
			s.reply.Grants[i] = Grant{Refusal: RefusedStore, Cell: s.reply.Grants[i].Cell, Retry: longestRetry}
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
