package oracle

import (
	"fmt"
	"slices"
	"time"
)

// The sliding log keeps every admission: each real interval (t-W, t] may have at most the limit. An
// admission at t has left the interval at t+W. Between admissions the sum only falls. Cells are
// only labels here.

// maxLogCells is the number of cells in the log's window, if each is then a second or longer.
const maxLogCells = 10

// logCellOf returns the number of the log's cell that contains a store time (µs).
func logCellOf(l Limit, at int64) int64 {
	cells := min(max(int64(l.Window/time.Second), 1), maxLogCells)
	return floorDiv(at, (l.Window.Microseconds()+cells-1)/cells)
}

func newLogCeiling(l Limit) ceiling {
	return newTimeline(
		func(at int64) int64 { return logCellOf(l, at) },
		func() meter { return newLogMeter(l) },
	)
}

func newLogPool(l Limit) pool { return newMeteredPool(newLogMeter(l), l.Limit) }

// logExceeded describes an interval above the limit.
func logExceeded(l Limit, t tally, _ int64) string {
	return fmt.Sprintf("%d units admitted in the interval of %v that ends at store time %d µs, on a limit of %d, %d too many",
		t.all, l.Window, t.at, l.Limit, t.all-l.Limit)
}

// logMeter sums up the admissions of the interval that ends now.
type logMeter struct {
	window, at int64
	entries    []logEntry // of the interval, the oldest first
	sum        wide
}

// logEntry is one admission.
type logEntry struct{ at, units int64 }

func newLogMeter(l Limit) meter { return &logMeter{window: l.Window.Microseconds(), at: dawn} }

func (m *logMeter) advance(at int64) {
	m.at = at
	for len(m.entries) > 0 && m.entries[0].at <= at-m.window {
		m.sum = m.sum.minus(product(m.entries[0].units, 1))
		m.entries = m.entries[1:]
	}
}

func (m *logMeter) admit(units int64) {
	m.entries = append(m.entries, logEntry{m.at, units})
	m.sum = m.sum.plus(product(units, 1))
}

func (m *logMeter) level() int64 { return m.sum.over(1) }

// since returns the first microsecond of the interval.
func (m *logMeter) since() int64 { return m.at - m.window + 1 }

func (m *logMeter) clone() meter {
	c := *m
	c.entries = slices.Clone(m.entries)
	return &c
}
