package exchange

import (
	"cmp"
	"maps"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

const (
	// DegradedAfter is the age of a peer's last answer beyond which this node is degraded towards
	// it, in microseconds. By then it has left four pings unanswered.
	DegradedAfter = 3 * allocator.Second
	// PingEvery is the longest time between two calls to a peer, in microseconds, and QuietEvery
	// that while the node is quiet and the peer has answered the last one.
	PingEvery  = allocator.Second / 2
	QuietEvery = allocator.Second
	// MaxCalls bounds the calls under way to one peer.
	MaxCalls = 32

	minTimeout       = allocator.Second
	maxTimeout       = 3 * allocator.Second
	assumedRoundTrip = allocator.Second / 10
)

// peer is what this node knows of another region, apart from its parts in buckets. Times are node
// time.
type peer struct {
	lastGeneration uint64 // the highest generation of its store that was heard and believed
	shown          []shown
	name           string
	heard          bool              // it ever answered
	answered       quantity.NodeTime // when the latest call that it answered was sent
	called         quantity.NodeTime // when it was last called
	roundTrip      int64             // smoothed, microseconds; 0: not measured
	underway       int               // calls under way
	queue          queue             // buckets that wait for room in calls to it
	// in the machine's peers: the document's order without this region
	index int
	open  int  // index in Effects.Calls of this step's call to it; see hasCall
	away  bool // this node was degraded towards it at the last tick
	clock clock
	moved Moved
}

// Moved counts the units that this node has moved between its region and peers. Those of one peer
// count since this node first knew it.
type Moved struct {
	Lent          quantity.Units // to the peer, of our entitlement
	Returned      quantity.Units // to the peer, of what we had borrowed
	Borrowed      quantity.Units // from the peer
	Regained      quantity.Units // from the peer, of what we had lent
	BurstLent     quantity.Units // tokens
	BurstBorrowed quantity.Units
}

// plus returns the sum of two counts.
func (m Moved) plus(o Moved) Moved {
	return Moved{m.Lent + o.Lent, m.Returned + o.Returned, m.Borrowed + o.Borrowed,
		m.Regained + o.Regained, m.BurstLent + o.BurstLent, m.BurstBorrowed + o.BurstBorrowed}
}

// noteMoved counts units of a limit that were moved between this region and a peer.
func (m *Machine) noteMoved(limit, peer string, units Moved) {
	m.stats.Moved = m.stats.Moved.plus(units)
	if p := m.peer(peer); p != nil {
		p.moved = p.moved.plus(units)
	}
	if limit != "" && units != (Moved{}) {
		m.movedBy[limit] = m.movedBy[limit].plus(units)
	}
}

// MovedByLimit returns the units that this node has moved since its start, by limit.
func (m *Machine) MovedByLimit() map[string]Moved { return maps.Clone(m.movedBy) }

// degraded depends on the age of the last answer alone; nothing sets it.
func (p *peer) degraded(now quantity.NodeTime) bool {
	return !p.heard || now.Sub(p.answered) > DegradedAfter
}

// pingEvery returns the longest time between the last call to a peer and the next one, in
// microseconds.
func (m *Machine) pingEvery(p *peer) int64 {
	if well := p.answered >= p.called; well && m.quiet() {
		return QuietEvery
	}
	return PingEvery
}

// quiet reports whether nothing goes on that peers have to do with: no bucket was used or asked
// about lately, no rights that still count were moved, and nothing is to be recovered.
func (m *Machine) quiet() bool { return len(m.views) == 0 && len(m.recoveries) == 0 }

// answeredCall notes the answer to a call sent at sent. The round trip is smoothed by an eighth of
// the difference.
func (p *peer) answeredCall(sent, now quantity.NodeTime) {
	p.heard = true
	p.answered = max(p.answered, sent)
	sample := now.Sub(sent)
	p.roundTrip = cmp.Or(p.roundTrip, sample)
	p.roundTrip += (sample - p.roundTrip) / 8
}

// expected returns the round trip to count on, in microseconds.
func (p *peer) expected() int64 {
	return cmp.Or(p.roundTrip, assumedRoundTrip)
}

// timeout returns how long a call may take, in microseconds: four round trips, from 1 s to 3 s.
func (p *peer) timeout() int64 {
	return min(max(4*p.expected(), minTimeout), maxTimeout)
}
