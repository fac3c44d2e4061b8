package algorithms

import "github.com/quotad/quotad/quantity"

// queue is leaky_bucket, as a queue. It serves requests one after the other at S[k] units a window,
// and at most C units wait or are in service. It admits when there is room, and says when the
// request's turn comes.
//
// Turns are promises. They are computed cell by cell with the shares known at the time, and the
// share of a cell may only be lowered from the last promised turn on. A rising share does not bring
// promised turns forward. No request waits longer than a full queue takes at the entitlement.
type queue struct {
	burstless
	unrestored
	rate
	backlog quantity.Units // work not done, as a numerator over ticks
	// tick from which work is not yet taken off the backlog: now, or the next tick
	at    int64
	next  int64 // tick before which no further turn begins
	dirty bool
	// unknown: the store lost the queue, and the region has none now, so that what was promised is not
	// known until it has one again. Nothing is charged meanwhile.
	unknown bool
}

func openQueue(h held) limiter {
	q := &queue{rate: newRate(h)}
	closed := int64(h.closed()) / h.Tick
	var known bool
	q.backlog, q.at, q.next, known = q.written(ceilDiv)
	switch {
	case known:
	// The turns promised before the loss are not known: the queue begins full.
	case closed > 0:
		q.at, q.backlog = closed, h.Burst*quantity.Units(q.ticks)
		q.next, q.unknown = max(q.after(closed, q.backlog), closed), h.Burst == 0
	default:
		q.backlog, q.at, q.next = 0, q.tick, 0
	}
	if known {
		q.dirty = q.catchUp(q.drain) && q.backlog > 0
	} else {
		q.drain()
	}
	if q.backlog == 0 {
		q.at = q.begun()
	}
	return q
}

// drain takes the work that was done up to now off the backlog.
func (q *queue) drain() {
	if q.at >= q.tick {
		return
	}
	at := q.at
	q.at = q.tick
	q.walk(at, func(_ quantity.Cell, from, to int64, share quantity.Units) bool {
		end := q.tick
		if to >= 0 {
			end = min(to, q.tick)
		}
		if share > 0 && quantity.Units(end-from) > q.backlog/share {
			q.backlog = 0
		} else {
			q.backlog -= share * quantity.Units(end-from)
		}
		return end == q.tick
	})
}

// turn returns the tick at which the next turn begins, -1 if none ever does.
func (q *queue) turn() int64 {
	done := q.tick
	if q.backlog > 0 {
		done = q.after(q.at, q.backlog)
	}
	if done < 0 {
		return -1
	}
	return max(done, q.next)
}

// longest returns the most ticks that a request may wait.
func (q *queue) longest() int64 { return q.FillTime() / q.Tick }

func (q *queue) free() quantity.Units { return q.Burst - ceilDiv(q.backlog, q.ticks) }

func (q *queue) state() State {
	return State{Cell: q.cell, Entitlement: q.Entitlement, Share: q.share(q.cell),
		NextShare: q.share(q.cell + 1), Reset: q.resetAfter(),
		Used: ceilDiv(q.backlog, q.ticks), Free: max(q.free(), 0)}
}

// resetAfter returns when the backlog is done and all promised turns are over: a request that comes
// then is served at once.
func (q *queue) resetAfter() int64 {
	turn := q.turn()
	if turn < 0 {
		return q.forgotten()
	}
	return q.until(turn)
}

func (q *queue) fits(cost quantity.Units, _ quantity.PPM) bool {
	return q.open(q.cell) && cost <= q.free() && q.turn()-q.tick <= q.longest() &&
		q.after(q.at, q.backlog+cost*quantity.Units(q.ticks)) >= 0
}

// retry returns when enough of the backlog is done and the next turn is near enough.
func (q *queue) retry(cost quantity.Units, _ quantity.PPM) int64 {
	if cost > q.Burst || q.after(q.at, q.backlog+cost*quantity.Units(q.ticks)) < 0 {
		return -1
	}
	room := q.after(q.at, max(q.backlog-(q.Burst-cost)*quantity.Units(q.ticks), 0))
	return q.until(max(room, q.turn()-q.longest(), ceilDiv(int64(q.closed()), q.Tick)))
}

// charge is not called: a Decide that would is implausible, since turns are promises.
func (q *queue) charge(_, _ quantity.Units) { panic("a queue is charged always") }

func (q *queue) take(cost quantity.Units) int64 {
	turn := q.turn()
	waits := turn == q.next
	q.next = q.after(max(turn, q.at), cost*quantity.Units(q.ticks))
	// The turn came from the backlog, which is exact to the last remainder. next is rounded up: one
	// tick less leaves the pace to the backlog.
	if !waits {
		q.next = max(q.next-1, turn)
	}
	q.backlog += cost * quantity.Units(q.ticks)
	q.dirty = true
	return q.until(turn)
}

func (q *queue) spare(kept quantity.Units) quantity.Units { return q.room(q.cell, "", kept) }

func (q *queue) room(cell quantity.Cell, _ string, kept quantity.Units) quantity.Units {
	if q.next > max(q.tick, int64(cell)*q.cells) {
		return 0
	}
	return q.share(cell) - kept
}

func (q *queue) settle(quantity.Units) { q.dirty = true }

func (q *queue) refund(quantity.StoreTime, quantity.Cell, quantity.Units) (quantity.Units,
	Refusal) {
	return 0, TurnPromised
}

func (q *queue) book(_ quantity.Cell, units quantity.Units) bool {
	if q.unknown {
		return false
	}
	q.backlog += units * quantity.Units(q.ticks)
	q.dirty = true
	return true
}

func (q *queue) reset() { q.backlog, q.at, q.next, q.dirty = 0, q.begun(), 0, true }

func (q *queue) save() {
	if !q.dirty {
		return
	}
	q.write(q.backlog, q.at, q.next)
}
