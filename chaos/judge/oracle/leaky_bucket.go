package oracle

import (
	"fmt"
	"time"
)

// The leaky bucket is a queue: each admission adds its cost to the backlog, which falls by L in W
// down to zero, and must never exceed B. Cells are only labels here.

// queueCellOf returns the number of the queue's cell that contains a store time (µs). A cell is a
// fifth of the window in whole seconds, from one to ten.
func queueCellOf(l Limit, at int64) int64 {
	seconds := min(max(int64(l.Window/(5*time.Second)), 1), 10)
	return floorDiv(at, seconds*time.Second.Microseconds())
}

func newQueueCeiling(l Limit) ceiling {
	return newTimeline(
		func(at int64) int64 { return queueCellOf(l, at) },
		func() meter { return newQueueMeter(l) },
	)
}

func newQueuePool(l Limit) pool { return newMeteredPool(newQueueMeter(l), l.Burst) }

// queueExceeded describes a backlog above the burst.
func queueExceeded(l Limit, t tally, units int64) string {
	return fmt.Sprintf("the queue held %d units on a burst of %d, %d too many, at store time %d µs, of %d units admitted since it was last empty",
		t.all, l.Burst, t.all-l.Burst, t.at, units)
}

// drainTime returns how long a full bucket takes to drain, or an empty one to fill, in µs, but at
// least a window. It is the period over which the false denials of a bucket are netted.
func drainTime(l Limit) int64 {
	window := l.Window.Microseconds()
	return min(max(window, product(l.Burst, window).over(l.Limit)), dusk)
}

// queueMeter measures the backlog.
type queueMeter struct {
	limit, window, at int64
	rates             []Rate // that come after at
	backlog           wide   // units times window, so that exactly limit drains in 1 µs
	burst             int64
	busy              int64 // when the backlog last rose from zero
}

func newQueueMeter(l Limit) meter {
	m := &queueMeter{limit: l.Limit, window: l.Window.Microseconds(), burst: l.Burst, at: dawn}
	if l.Rates != nil {
		m.rates = l.Rates()
	}
	return m
}

func (m *queueMeter) advance(at int64) {
	for len(m.rates) > 0 && m.rates[0].From <= at {
		m.drain(max(m.rates[0].From, m.at))
		m.become(m.rates[0])
		m.rates = m.rates[1:]
	}
	m.drain(at)
}

// become has another rate and burst hold. What was left of a larger burst is left.
func (m *queueMeter) become(r Rate) {
	m.limit = r.Limit
	if r.Burst == 0 {
		return
	}
	if r.Burst < m.burst {
		m.backlog = m.backlog.minus(product(m.burst-r.Burst, m.window))
	}
	m.burst = r.Burst
}

// drain has the backlog fall until a time, at one rate.
func (m *queueMeter) drain(at int64) {
	m.backlog = m.backlog.minus(product(m.limit, at-m.at))
	m.at = at
}

func (m *queueMeter) admit(units int64) {
	if m.backlog == (wide{}) {
		m.busy = m.at
	}
	m.backlog = m.backlog.plus(product(units, m.window))
}

func (m *queueMeter) level() int64 { return m.backlog.over(m.window) }

func (m *queueMeter) since() int64 {
	if m.backlog == (wide{}) {
		return m.at
	}
	return m.busy
}

func (m *queueMeter) clone() meter {
	c := *m
	return &c
}
