package algorithms

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
	backlog int64 // work not done, as a numerator over ticks
	at      int64 // tick from which work is not yet taken off the backlog: now, or the next tick
	next    int64 // tick before which no further turn begins
	dirty   bool
}

func openQueue(h held) limiter {
	q := &queue{rate: newRate(h)}
	closed := h.closed() / h.Tick
	var known bool
	q.backlog, q.at, q.next, known = q.written(ceilDiv)
	switch {
	case known:
	// The turns promised before the loss are not known: the queue begins full.
	case closed > 0:
		q.at, q.backlog = closed, h.Burst*q.ticks
		q.next = max(q.after(closed, q.backlog), closed)
	default:
		q.backlog, q.at, q.next = 0, q.tick, 0
	}
	if q.at < q.tick {
		q.drain(q.at)
	}
	if q.backlog == 0 {
		q.at = q.begun()
	}
	return q
}

// drain takes the work from tick at up to now off the backlog.
func (q *queue) drain(at int64) {
	q.at = q.tick
	q.walk(at, func(_, from, to, share int64) bool {
		end := q.tick
		if to >= 0 {
			end = min(to, q.tick)
		}
		if share > 0 && end-from > q.backlog/share {
			q.backlog = 0
		} else {
			q.backlog -= share * (end - from)
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
func (q *queue) longest() int64 { return q.fillTime() / q.Tick }

func (q *queue) free() int64 { return q.Burst - ceilDiv(q.backlog, q.ticks) }

func (q *queue) state() State {
	return State{Cell: q.cell, Entitlement: q.Entitlement, Share: q.share(q.cell), NextShare: q.share(q.cell + 1),
		Used: ceilDiv(q.backlog, q.ticks), Free: max(q.free(), 0)}
}

func (q *queue) fits(cost int64) bool {
	return q.open(q.cell) && cost <= q.free() && q.turn()-q.tick <= q.longest() && q.after(q.at, q.backlog+cost*q.ticks) >= 0
}

// retry returns when enough of the backlog is done and the next turn is near enough.
func (q *queue) retry(cost int64) int64 {
	if cost > q.Burst || q.after(q.at, q.backlog+cost*q.ticks) < 0 {
		return -1
	}
	room := q.after(q.at, max(q.backlog-(q.Burst-cost)*q.ticks, 0))
	return q.until(max(room, q.turn()-q.longest(), ceilDiv(q.closed(), q.Tick)))
}

func (q *queue) take(cost int64) int64 {
	turn := q.turn()
	waits := turn == q.next
	q.next = q.after(max(turn, q.at), cost*q.ticks)
	// The turn came from the backlog, which is exact to the last remainder. next is rounded up: one
	// tick less leaves the pace to the backlog.
	if !waits {
		q.next = max(q.next-1, turn)
	}
	q.backlog += cost * q.ticks
	q.dirty = true
	return q.until(turn)
}

func (q *queue) spare(kept int64) int64 { return q.room(q.cell, "", kept) }

func (q *queue) room(cell int64, _ string, kept int64) int64 {
	if q.next > max(q.tick, cell*q.cells) {
		return 0
	}
	return q.share(cell) - kept
}

func (q *queue) settle(int64) { q.dirty = true }

func (q *queue) refund(int64, int64, int64) (int64, Refusal) { return 0, TurnPromised }

func (q *queue) book(_, units int64) bool {
	q.backlog += units * q.ticks
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
