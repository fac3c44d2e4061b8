package exchange

import (
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// maxTurns bounds how many waiting buckets are planned for one peer in one step. Further ones wait
// for the next step, which comes within a tick.
const maxTurns = 4 * MaxAsks

// turn says why a bucket waits to ask a peer.
//
// The calls to a peer have room for MaxCalls times MaxAsks asks. If more buckets want to ask, they
// queue, first come, first served, and no bucket overtakes a waiting one. Without the queue a few
// thousand busy buckets, reported every few milliseconds, would take every place as it becomes free
// and keep another bucket out for good.
type turn uint8

const (
	noTurn turn = iota
	toGain      // the plan wants rights for it
	inNeed      // requests of it are denied; these buckets go first
	turns
)

// queue holds the buckets that wait for a peer, by the reason why.
type queue [turns]line

func (q *queue) empty() bool { return q[toGain].empty() && q[inNeed].empty() }

// line holds buckets in the order in which they came. It uses its memory again.
type line struct {
	views []*view
	taken int // how many of views, from the first on, were popped
}

func (l *line) empty() bool { return l.taken == len(l.views) }

// add puts a bucket at the end. If the memory is full and more than half of it was popped, the
// other buckets move up.
func (l *line) add(v *view) {
	if len(l.views) == cap(l.views) && l.taken > len(l.views)/2 {
		l.views, l.taken = slices.Delete(l.views, 0, l.taken), 0
	}
	l.views = append(l.views, v)
}

// pop removes the first bucket and returns it.
func (l *line) pop() *view {
	v := l.views[l.taken]
	l.views[l.taken] = nil
	if l.taken++; l.empty() {
		l.views, l.taken = l.views[:0], 0
	}
	return v
}

// mayAsk reports whether an ask may go to a peer now: a call has room, and no other bucket waits.
// Otherwise the caller's bucket must wait for its turn.
func (m *Machine) mayAsk(p *peer) bool {
	return (m.serves == p || p.queue.empty()) && m.hasRoom(p)
}

func (m *Machine) hasRoom(p *peer) bool { return p.underway < MaxCalls || m.isOpen(p) }

// crowdedOut reports whether no peer has room for an ask of the bucket now. The bucket then waits for
// each of them, and asks nobody before its turn: it is planned again then, so its caller need not
// work out what to ask for.
func (m *Machine) crowdedOut(now quantity.NodeTime, v *view) bool {
	if slices.ContainsFunc(m.peers, m.mayAsk) {
		return false
	}
	for _, p := range m.peers {
		if !p.degraded(now) {
			m.wait(now, v, p)
		}
	}
	return true
}

// wait puts a bucket behind those that wait for a peer, unless it waits there already for the same
// or a more urgent reason.
func (m *Machine) wait(now quantity.NodeTime, v *view, p *peer) {
	why := toGain
	if v.wanted > 0 || v.inNeed(now) {
		why = inNeed
	}
	m.stats.Dropped++
	if d := &v.dealings[p.index]; d.turn < why {
		d.turn = why
		p.queue[why].add(v)
	}
}

// takeTurns plans buckets that wait for a peer, as far as its calls have room. Each asks for what
// it lacks by now.
func (m *Machine) takeTurns(now quantity.NodeTime) {
	for _, p := range m.peers {
		for n := 0; n < maxTurns && !p.queue.empty() && m.hasRoom(p); n++ {
			v := p.queue.next(p)
			if v == nil || m.views[v.ID] != v || v.Epoch != m.epoch {
				continue
			}
			m.serves = p
			m.plan(now, v, allocator.PPM)
			m.serves = nil
		}
	}
}

// next removes the first bucket of the queue and returns it. It returns nil if the bucket had its
// turn already, in the line of those in need.
func (q *queue) next(p *peer) *view {
	why := inNeed
	if q[inNeed].empty() {
		why = toGain
	}
	v := q[why].pop()
	d := v.with(p)
	if d.turn != why {
		return nil
	}
	d.turn = noTurn
	return v
}
