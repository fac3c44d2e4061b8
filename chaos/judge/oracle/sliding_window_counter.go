package oracle

import "fmt"

// The sliding counter's cells are windows of W µs. It estimates the use of the window that ends at
// an instant, e µs into cell k. The estimate is U[k] so far, plus U[k-1] in proportion to the part
// of cell k-1 that this window still covers:
//
//	U[k] * W + U[k-1] * (W - e) <= L * W
//
// Between admissions the estimate falls, and it is continuous where a cell ends, so it is highest
// right after an admission.

func newCounterCeiling(l Limit) ceiling {
	return newTimeline(
		func(at int64) int64 { return windowOf(l, at) },
		func() meter { return newCounterMeter(l) },
	)
}

func newCounterPool(l Limit) pool { return newMeteredPool(newCounterMeter(l), l.Limit) }

// counterExceeded describes an estimate above the limit.
func counterExceeded(l Limit, t tally, units int64) string {
	return fmt.Sprintf("the estimate reached %d units on a limit of %d, %d too many, at store time %d µs, with %d units admitted in this cell and the one before",
		t.all, l.Limit, t.all-l.Limit, t.at, units)
}

// counterMeter measures the estimate.
type counterMeter struct {
	window       int64
	at, cell     int64
	used, before int64 // units of the cell, and of the one before it
}

func newCounterMeter(l Limit) meter {
	return &counterMeter{window: l.Window.Microseconds(), at: dawn, cell: windowOf(l, dawn)}
}

func (m *counterMeter) advance(at int64) {
	switch cell := floorDiv(at, m.window); cell {
	case m.cell:
	case m.cell + 1:
		m.cell, m.used, m.before = cell, 0, m.used
	default:
		m.cell, m.used, m.before = cell, 0, 0
	}
	m.at = at
}

func (m *counterMeter) admit(units int64) { m.used = add(m.used, units) }

func (m *counterMeter) level() int64 {
	elapsed := m.at - m.cell*m.window
	return add(m.used, product(m.before, m.window-elapsed).over(m.window))
}

// since returns the beginning of the previous cell.
func (m *counterMeter) since() int64 { return (m.cell - 1) * m.window }

func (m *counterMeter) clone() meter {
	c := *m
	return &c
}
