//go:build !race

package algorithms

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

func logged(entitlement quantity.Units) Terms {
	return Terms{Kind: SlidingWindowLog, Window: 1000, Cell: 250, Tick: 1, Entitlement: entitlement}
}

// TestLogLoanIsMissingForAWindow: a unit lent in cell c is missing from the lender until end(c) +
// W. L = 100 = 50 + 50. All is lent in cell 0, and the borrower uses 100 at 249, the cell's last
// moment. They are in (t - 1000, t] until 1248. If the lender had its 50 again at the cell's end,
// it would admit them at 250: 150.
func TestLogLoanIsMissingForAWindow(t *testing.T) {
	l, b, at := parties(t, logged(50), logged(50))
	b.borrows(l, 0, 50)
	at(249)
	b.admits(100)
	for _, later := range []quantity.Cell{250, 500, 1000, 1249} {
		at(later)
		l.denies(1, int64(1250-later))
	}
	b.admits(50) // its own, at 1249
	at(1250)
	l.admits(50)
	b.denies(1, 999)
}

// TestLogLoanOutlivesTheGuard: with clocks apart by up to 100, the borrower's cell 0 may end at
// 350: until 1350.
func TestLogLoanOutlivesTheGuard(t *testing.T) {
	guarded := logged(50)
	guarded.ClockMargin = 100
	l, b, at := parties(t, guarded, guarded)
	l.lends(b, 0, 50)
	at(1349)
	l.denies(1, 1)
	at(1350)
	l.has(50, 50)
}

// TestLogPromiseIsMissingAtOnce: the cells in force include the promised one. The lender of 50 has
// used 20 at 0 and promises 30 of cell 1 at 100. Were they still free until 250, it would use them
// at 249 and the borrower 80 at 250: 130. And used units cannot be promised: the 20 are in the
// window until 1000.
func TestLogPromiseIsMissingAtOnce(t *testing.T) {
	l, b, at := parties(t, logged(50), logged(50))
	l.admits(20)
	at(100)
	equal(t, "promised", l.lends(b, 1, 50), 30)
	b.hears(l, 1, Credit{Announcement: Announcement{Lent: 30}})
	l.has(20, 0)
	b.has(50, 50)
	at(249)
	l.denies(1, 751) // when the 20 of 0 have left
	at(250)
	b.has(80, 80)
	b.admits(80)
	at(1000)
	l.admits(20) // the 30 are missing until 500 + 1000
	l.denies(1, 500)
	b.denies(1, 250)
}

// TestLogDeductsTheLargest: for each peer the largest loan of the cells in force is missing, not
// their sum: 30 in each of the cells 0 to 3 cost 30 of 50. With the sum, a region could lend to a
// borrower only once in a window.
func TestLogDeductsTheLargest(t *testing.T) {
	l, b, at := parties(t, logged(50), logged(50))
	l.admits(20)
	for k := range quantity.Cell(4) {
		at(250 * k)
		b.borrows(l, k, 30)
		l.has(20, 0)
		b.has(80, 80)
	}
	at(1000)
	l.has(20, 20)
	// 30 cost nothing, and 20 were free
	equal(t, "beside the 30 still missing", l.lends(b, 4, 50), 50)
	l.has(0, 0)
	at(1999) // cell 3 ended at 1000, cell 4 at 1250
	l.has(0, 0)
	at(2250)
	l.has(50, 50)
}

// TestLogWindowIsHalfOpen: an entry counts in (t - W, t]: for exactly a window, not a microsecond
// longer.
func TestLogWindowIsHalfOpen(t *testing.T) {
	l, _, at := parties(t, logged(50), logged(50))
	l.admits(30)
	at(400)
	l.admits(20)
	l.denies(30, 600)
	l.denies(31, 1000)
	l.denies(51, -1)
	at(999)
	l.denies(1, 1)
	at(1000)
	l.admits(30)
}
