package exchange

import "github.com/quotad/quotad/allocator"

const (
	// clockPeriod is how long one quickest answer is looked for; that of the last period and of this one count.
	clockPeriod = allocator.Second * 30
	// maxTime bounds the times of peers that are computed with: 2112.
	maxTime = 1 << 52
)

// clock estimates how far a peer's store clock is ahead of ours. A reply carries the peer's time of a moment within the
// call; half way is a guess that is wrong by at most half the round trip, so the quickest of many answers knows best.
type clock struct {
	since        int64 // when this period began
	last, before reading
}

// reading is what one answer told; quick is its round trip plus one, 0: there was none.
type reading struct{ apart, quick int64 }

// add takes in an answer that came at now to a call sent at sent: theirs is the peer's store time in it, ours that of
// our store now. All are microseconds.
func (c *clock) add(theirs, ours, sent, now int64) {
	c.turn(now)
	r := reading{apart: theirs + (now-sent)/2 - ours, quick: now - sent + 1}
	if c.last.quick == 0 || r.quick <= c.last.quick {
		c.last = r
	}
}

// turn begins a new period when the present one is over.
func (c *clock) turn(now int64) {
	if now-c.since < clockPeriod {
		return
	}
	c.before, c.last = c.last, reading{}
	if now-c.since >= 2*clockPeriod {
		c.before = reading{}
	}
	c.since = now
}

// apart returns the estimate; false: no answer of the last minute told.
func (c clock) apart(now int64) (int64, bool) {
	c.turn(now)
	r := c.last
	if r.quick == 0 || c.before.quick > 0 && c.before.quick < r.quick {
		r = c.before
	}
	return r.apart, r.quick > 0
}

// noteStoreTime notes a store time that was seen at a node time.
func (m *Machine) noteStoreTime(store, now int64) { m.offset, m.clockKnown = store-now, true }

// StoreClock returns how far the store's clock is ahead of the machine's, in microseconds, by the
// last answer of the store that the machine was told of. It is too low by the time the answer
// took. known is false if the machine has been told of none.
func (m *Machine) StoreClock() (ahead int64, known bool) { return m.offset, m.clockKnown }

// stampReplies puts our store's time on the replies of a step: none earlier than the debits that it announces, for what was told of the
// store since may be older.
func (m *Machine) stampReplies(now int64) {
	for i := range m.out.Replies {
		if r := &m.out.Replies[i].Reply; m.clockKnown {
			r.At = max(r.At, now+m.offset)
		}
	}
}
