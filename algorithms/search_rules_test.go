//go:build !race

package algorithms

import (
	"fmt"

	"github.com/quotad/quotad/quantity"
)

// slot is where an admission at a time is counted: in its cell, or for the log in its tick.
func (s *space) slot(t quantity.StoreTime) quantity.StoreTime {
	if s.kind == SlidingWindowLog {
		return t
	}
	return quantity.StoreTime(CellAt(t, s.cell))
}

// since is the first slot that still counts at a time. For the fixed window that is the earliest
// cell that the other region may still be in.
func (s *space) since(now quantity.StoreTime) quantity.StoreTime {
	switch s.kind {
	case SlidingWindowCounter:
		return quantity.StoreTime(max(CellAt(now, s.cell)-1, 0))
	case SlidingWindowLog:
		return max(now.Add(-s.window)+1, 0)
	}
	return quantity.StoreTime(max(CellAt(now.Add(-s.drift), s.cell), 0))
}

// over is when rows of a cell cannot matter any more.
func (s *space) over(cell quantity.Cell) quantity.StoreTime {
	end := (cell + 1).OpensAt(s.cell)
	if s.kind.Sliding() {
		end += quantity.StoreTime(s.window + s.guard)
	}
	return end
}

// weigh returns how many of the units that a region admitted count, by the region's own clock:
//   - fixed window: those of the current cell.
//   - counter: the estimate, as a numerator over the ticks of a window.
//   - log: those of (now-W, now]. If the clock is always ahead by the same amount, that is the
//     same interval in real time. (If clocks drift, the log of a single region is not exact in real
//     time.)
func (s *space) weigh(m *moment) (sum quantity.StoreTime) {
	cell := CellAt(m.now, s.cell)
	switch s.kind {
	case FixedWindow:
		sum = m.admitted[cell]
	case SlidingWindowCounter:
		sum = quantity.StoreTime(int64(m.admitted[cell]) * s.window)
		if cell > 0 {
			sum += quantity.StoreTime(int64(m.admitted[cell-1]) * (s.window - int64(m.now)%s.cell))
		}
	case SlidingWindowLog:
		for t := s.since(m.now); t <= m.now; t++ {
			sum += m.admitted[t]
		}
	}
	return sum
}

// full is the weight of a whole limit.
func (s *space) full() quantity.StoreTime {
	if s.kind == SlidingWindowCounter {
		return quantity.StoreTime(searchLimit * s.window)
	}
	return searchLimit
}

// overLimit begins the text about a broken ceiling.
const overLimit = "over the limit: "

// broken returns the invariant that a state breaks, if any.
func (s *search) broken(w world) string {
	a, b := s.moment(w, 0), s.moment(w, 1)
	switch {
	case s.kind == TokenBucket && w.level < 0:
		return fmt.Sprintf(overLimit+"the pooled bucket is at %d/%d", w.level, s.window)
	case s.kind == FixedWindow:
		for cell := quantity.Cell(max(s.since(a.now), s.since(b.now))); cell < s.cells; cell++ {
			if a.admitted[cell]+b.admitted[cell] > searchLimit {
				return fmt.Sprintf(overLimit+"cell %d has admitted %d + %d of %d units", cell,
					a.admitted[cell], b.admitted[cell], searchLimit)
			}
		}
	case a.weight+b.weight > s.full():
		return fmt.Sprintf(overLimit+
			"in the windows that end at a's tick %d and b's tick %d count %d/%d + %d/%[4]d of %[6]d units",
			a.now, b.now, a.weight, s.full()/searchLimit, b.weight, searchLimit)
	}
	for cell := CellAt(max(a.now, b.now), s.cell); cell < s.cells; cell++ {
		if bad := s.unsound(a.rows[cell], b.rows[cell]); bad != "" {
			return fmt.Sprintf("unsound rows: in cell %d %s", cell, bad)
		}
	}
	return ""
}

// unsound returns what is wrong with the rows of a cell that neither region has finished.
func (s *search) unsound(a, b Row) string {
	switch {
	case a.Borrowed > b.Lent || b.Borrowed > a.Lent:
		return fmt.Sprintf("a borrowed %d of %d lent, b %d of %d", a.Borrowed, b.Lent, b.Borrowed,
			a.Lent)
	case a.Regained > b.Returned || b.Regained > a.Returned:
		return fmt.Sprintf("a regained %d of %d returned, b %d of %d", a.Regained, b.Returned,
			b.Regained, a.Returned)
	case a.out() > s.mutant.lendable(0) || b.out() > s.mutant.lendable(1):
		return fmt.Sprintf("a lent %d and b %d, more than their own", a.out(), b.out())
	case a.net()+b.net() > 0:
		return fmt.Sprintf("the shares are %d + %d of %d", entitlements[0]+a.net(),
			entitlements[1]+b.net(), searchLimit)
	}
	return ""
}

// mutant says which rules to leave out.
type mutant struct {
	lendsOn   bool // depth one: what is borrowed may be lent
	forgets   bool // the shadow: what was lent in finished cells is not missing any more
	overlooks bool // the promise: what is lent of the next cell is not missing yet
	// what is assigned is not missing from what the store admits, or from what it lends
	admitsAssigned, lendsAssigned bool
	keepsHandedBack               bool // an Envoy has a rate that its node handed back
	// hear, unless nil, replaces a credit. If it returns false, the credit is done after all.
	hear func(b *bucket, peer string, cell quantity.Cell, a announced) bool
}

// lendable is the most that a region may have lent of a cell.
func (m mutant) lendable(i int) quantity.Units {
	if m.lendsOn {
		return MaxUnits
	}
	return entitlements[i]
}

// hide removes the rows of the next cell from the view of a region that overlooks promises.
func (m mutant) hide(b *bucket, next quantity.Cell) (restore func()) {
	hidden, any := b.rows[next]
	if !m.overlooks || !any {
		return func() {}
	}
	delete(b.rows, next)
	return func() { b.rows[next] = hidden }
}

// hearTwice counts a row as often as it is heard.
func hearTwice(b *bucket, peer string, _ quantity.Cell, a announced) bool {
	row := b.rows[a.cell][peer]
	row.Borrowed += a.lent
	b.setRow(a.cell, peer, row)
	return a.lent > 0 && row.Borrowed <= 6
}

// hearLate counts a row of a finished cell in the current one.
func hearLate(b *bucket, peer string, cell quantity.Cell, a announced) bool {
	if a.cell >= cell {
		return false
	}
	row := b.rows[cell][peer]
	row.Borrowed = max(row.Borrowed, a.lent)
	b.setRow(cell, peer, row)
	return true
}

// hearTooMuch regains whatever was lent.
func hearTooMuch(b *bucket, peer string, _ quantity.Cell, a announced) bool {
	row := b.rows[a.cell][peer]
	row.Regained = row.Lent
	b.setRow(a.cell, peer, row)
	return row.Lent > 0
}
