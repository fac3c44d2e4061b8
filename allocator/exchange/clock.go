package exchange

import (
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

const (
	// clockPeriod is the length of a measuring period, in microseconds. The estimate uses the
	// quickest answer of this period and of the one before.
	clockPeriod = allocator.Second * 30
	// maxTime is the largest time that the machine accepts from a peer, in microseconds since 1970
	// (the year 2112).
	maxTime = 1 << 52
)

// clock estimates how far a peer's store clock is ahead of ours. A reply carries the peer's store
// time at some moment during the call. The estimate assumes the middle of the call, so it is wrong
// by at most half the round trip. Therefore the quickest answer is the best one.
type clock struct {
	since        quantity.NodeTime // when this period began, node time
	last, before reading
}

// reading is what one answer told: how far the peer's store clock is ahead of ours, and the
// answer's round trip plus one (quick; 0: no answer). Both are microseconds.
type reading struct{ apart, quick int64 }

// add takes in an answer that arrived at now to a call sent at sent. theirs is the peer's store
// time in the answer, ours is our store's time now. All are microseconds.
func (c *clock) add(theirs, ours quantity.StoreTime, sent, now quantity.NodeTime) {
	c.turn(now)
	r := reading{apart: theirs.Add((now.Sub(sent)) / 2).Sub(ours), quick: now.Sub(sent) + 1}
	if c.last.quick == 0 || r.quick <= c.last.quick {
		c.last = r
	}
}

// turn begins a new period if the current one is over.
func (c *clock) turn(now quantity.NodeTime) {
	if now.Sub(c.since) < clockPeriod {
		return
	}
	c.before, c.last = c.last, reading{}
	if now.Sub(c.since) >= 2*clockPeriod {
		c.before = reading{}
	}
	c.since = now
}

// apart returns how far the peer's store clock is ahead of ours, in microseconds. It returns false
// if no answer of this period or the one before carried a time.
func (c clock) apart(now quantity.NodeTime) (int64, bool) {
	c.turn(now)
	r := c.last
	if r.quick == 0 || c.before.quick > 0 && c.before.quick < r.quick {
		r = c.before
	}
	return r.apart, r.quick > 0
}

// noteStoreTime notes that the store's time was store at the node time now.
func (m *Machine) noteStoreTime(store quantity.StoreTime, now quantity.NodeTime) {
	m.offset, m.clockKnown, m.shown = int64(store)-int64(now), true, max(m.shown, store)
}

// storeTime returns what the store's clock shows at a node time, by its last answer.
func (m *Machine) storeTime(now quantity.NodeTime) quantity.StoreTime {
	return quantity.StoreTime(now.Add(m.offset))
}

// StoreClock returns how far the store's clock is ahead of the node's, in microseconds, by the last
// answer of the store that the machine was told of. It is too low by the time that the answer took.
// known is false if the machine was told of none.
func (m *Machine) StoreClock() (ahead int64, known bool) { return m.offset, m.clockKnown }

// stampReplies puts our store's time on the replies of a step. The time is never before the debits
// that a reply announces: the machine may have heard an older store time since.
func (m *Machine) stampReplies(now quantity.NodeTime) {
	for i := range m.out.Replies {
		if r := &m.out.Replies[i].Reply; m.clockKnown {
			r.At = max(r.At, m.storeTime(now))
		}
	}
}
