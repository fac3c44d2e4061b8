package rivals

import "slices"

// meter is the rule of one algorithm: it counts how much of all that was charged still weighs. Time
// must not go back.
type meter interface {
	// advance moves on to a time in µs.
	advance(at int64)
	// charge counts units that are admitted now.
	charge(units int64)
	// level returns what weighs now, in units, rounded up. As costs and bounds are whole units, a
	// sum is above a bound if and only if it is above it after rounding.
	level() int64
	// rate sets the units per window from now on. Only buckets use it.
	rate(units int64)
	// clone returns a copy that shares nothing.
	clone() meter
}

// newMeter returns the meter of an algorithm by its policy name.
func newMeter(algorithm string, units, window int64) meter {
	switch algorithm {
	case "sliding_window_counter":
		return &windows{window: window, slides: true}
	case "sliding_window_log":
		return &record{window: window}
	case "token_bucket", "leaky_bucket":
		return &queue{window: window, units: units}
	default:
		return &windows{window: window}
	}
}

// windows counts by labelled window: for the fixed window only the present one; for the sliding
// counter also the part of the last one that a sliding window still covers.
type windows struct {
	window, at, cell int64
	used, before     int64
	slides           bool
}

func (m *windows) advance(at int64) {
	switch cell := at / m.window; cell {
	case m.cell:
	case m.cell + 1:
		m.cell, m.used, m.before = cell, 0, m.used
	default:
		m.cell, m.used, m.before = cell, 0, 0
	}
	m.at = at
}

func (m *windows) charge(units int64) { m.used += units }

func (m *windows) level() int64 {
	if !m.slides {
		return m.used
	}
	left := m.window - (m.at - m.cell*m.window)
	return m.used + (m.before*left+m.window-1)/m.window
}

func (m *windows) rate(int64) {}

func (m *windows) clone() meter {
	c := *m
	return &c
}

// record keeps every admission of the last window.
type record struct {
	window, at, sum int64
	entries         []entry // by time
}

// entry is units admitted at one time.
type entry struct{ at, units int64 }

func (m *record) advance(at int64) {
	m.at = at
	gone := 0
	for ; gone < len(m.entries) && m.entries[gone].at <= at-m.window; gone++ {
		m.sum -= m.entries[gone].units
	}
	m.entries = m.entries[gone:]
}

func (m *record) charge(units int64) {
	m.entries = append(m.entries, entry{m.at, units})
	m.sum += units
}

func (m *record) level() int64 { return m.sum }
func (m *record) rate(int64)   {}

func (m *record) clone() meter {
	c := *m
	c.entries = slices.Clone(m.entries)
	return &c
}

// queue is the backlog of a leaky bucket, or what is missing from a token bucket. It falls by so
// many units in a window, down to zero.
type queue struct {
	window, units, at int64
	backlog           int64 // in units times the window, so that nothing is rounded
}

// advance does not compute the product for times longer than the backlog lasts, which keeps it
// small.
func (m *queue) advance(at int64) {
	if passed := at - m.at; m.units > 0 && passed > m.backlog/m.units {
		m.backlog = 0
	} else {
		m.backlog -= passed * m.units
	}
	m.at = at
}

func (m *queue) charge(units int64) { m.backlog += units * m.window }
func (m *queue) level() int64       { return (m.backlog + m.window - 1) / m.window }
func (m *queue) rate(units int64)   { m.units = units }

func (m *queue) clone() meter {
	c := *m
	return &c
}
