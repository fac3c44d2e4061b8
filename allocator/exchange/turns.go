package exchange

import (
	"slices"

	"github.com/quotad/quotad/allocator"
)

// Calls to a peer have room for MaxCalls times MaxAsks asks. Where more buckets need one, they
// wait for their turn: first come, first served, and nobody overtakes who waits. Else a few
// thousand busy buckets, reported every few milliseconds, would take each place as it becomes free
// and keep another out for good.

// maxTurns bounds the buckets that are planned for a peer in one step because it is their turn.
// Further ones wait for the next step, which is at most a tick away.
const maxTurns = 4 * MaxAsks

// turn says for what a bucket waits.
type turn uint8

const (
	noTurn turn = iota
	toGain      // it would gain on its plan
	inNeed      // requests are denied: these go first
	turns
)

// queue is who waits for a peer, by why.
type queue [turns]line

func (q *queue) empty() bool { return q[toGain].empty() && q[inNeed].empty() }

// line is buckets in the order in which they came. Its room is used again and again.
type line struct {
	views []*view
	taken int // of the first of them
}

func (l *line) empty() bool { return l.taken == len(l.views) }

// add puts a bucket at the end. Where there is no room but much was taken, the others move up.
func (l *line) add(v *view) {
	if len(l.views) == cap(l.views) && l.taken > len(l.views)/2 {
		l.views, l.taken = slices.Delete(l.views, 0, l.taken), 0
	}
	l.views = append(l.views, v)
}

// pop takes the first off the line.
func (l *line) pop() *view {
	v := l.views[l.taken]
	l.views[l.taken] = nil
	if l.taken++; l.empty() {
		l.views, l.taken = l.views[:0], 0
	}
	return v
}

// mayAsk says whether an ask of a bucket may go to a peer now: there is room, and nobody waits but
// it. Else the bucket has to wait for its turn.
func (m *Machine) mayAsk(p *peer) bool {
	return (m.serves == p || p.queue.empty()) && m.hasRoom(p)
}

func (m *Machine) hasRoom(p *peer) bool { return p.underway < MaxCalls || m.isOpen(p) }

// wait puts a bucket behind those that wait for a peer, unless it waits there already for as much.
func (m *Machine) wait(now int64, v *view, p *peer) {
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

// takeTurns plans the buckets that wait for a peer as far as there is room. What they ask for is
// what they lack by now.
func (m *Machine) takeTurns(now int64) {
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

// next takes the first off the queue; nil: it has been taken before, as one in need.
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
