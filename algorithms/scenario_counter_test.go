//go:build !race

package algorithms

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

func sliding(entitlement quantity.Units) Terms {
	return Terms{Kind: SlidingWindowCounter, Window: 1000, Cell: 1000, Tick: 1,
		Entitlement: entitlement}
}

// TestCounterShadow: what was lent still weighs in the next cell, for as long as the use it allowed
// does. L = 100 = 50 + 50. The lender lends all, and the borrower uses 100. At 1250 these weigh 100
// x 0.75 = 75, so 25 are free in all regions together: the lender has 50 - 50 x 0.75 = 12.5, the
// borrower 50 - 75 < 0. A lender that began at its 50 again would make it 75 + 50 = 125.
func TestCounterShadow(t *testing.T) {
	l, b, at := parties(t, sliding(50), sliding(50))
	b.borrows(l, 0, 50)
	b.admits(100)
	at(1000)
	l.has(0, 0)     // 50 - 50 x 1
	l.denies(1, 20) // 50 x 0.02 = 1
	b.denies(1, 510)
	at(1250)
	l.has(12, 12)
	l.admits(12)
	l.denies(1, 10) // at 1260: 50 x 0.26 = 13
	b.denies(1, 260)
	at(1510)
	b.admits(1) // 100 x 0.49 = 49 of 50
	at(2000)
	l.has(50, 38) // the 12 of cell 1
}

// TestCounterShadowOutlivesTheGuard: with clocks apart by up to g = 100, the borrower's cell may
// end 100 later. The shadow stays whole until 1100, and ends at 2100.
func TestCounterShadowOutlivesTheGuard(t *testing.T) {
	guarded := sliding(50)
	guarded.ClockMargin = 100
	l, b, at := parties(t, guarded, guarded)
	b.borrows(l, 0, 50)
	at(1100)
	l.has(0, 0)
	at(1600)
	l.has(25, 25) // half a window after 1100
	at(2099)
	l.has(49, 49)
	at(2100)
	l.has(50, 50)
}

// TestCounterPromiseMustBeFreeBefore: what is promised for the next cell must be free before it
// opens. The lender has used 50 of 50 in cell 0, which still weigh 50 when cell 1 opens. Had it
// promised 50, the borrower would admit 100 there beside them: 150. With 20 used it can promise 30.
func TestCounterPromiseMustBeFreeBefore(t *testing.T) {
	l, b, at := parties(t, sliding(50), sliding(50))
	l.admits(50)
	at(900)
	equal(t, "promised with all of it used", l.lends(b, 1, 50), 0)

	l, b, at = parties(t, sliding(50), sliding(50))
	l.admits(20)
	at(900)
	equal(t, "promised with 30 free", l.lends(b, 1, 50), 30)
}

// TestCounterPromiseIsMissingAtOnce: promised units are missing here from the promise on, before
// their cell opens. Of 50 the lender has used 20 and promised 30. Were these still free until 1000,
// it would use them at 999, the borrower its 80 at 1000, and all regions together would count 50 +
// 80 = 130.
func TestCounterPromiseIsMissingAtOnce(t *testing.T) {
	l, b, at := parties(t, sliding(50), sliding(50))
	l.admits(20)
	at(900)
	b.borrows(l, 1, 30)
	l.has(20, 0)
	b.has(50, 50) // nothing before cell 1
	l.denies(1, 150)
	at(1000)
	b.has(80, 80)
	b.admits(80)
	l.denies(1, 50)
	at(1050) // 20 x 0.95 = 19, and 80: 99
	l.admits(1)
	l.denies(1, 50)
}

// TestCounterDeductsTheLargest: for each peer the largest of loan, promise and shadow is missing,
// not their sum. The shadow of 30 lent in cell 0 covers a loan of 30 in cell 1: even with nothing
// else free, lending it again costs nothing. With the sum, the lender of 50 would be at -10, and
// could lend to a steady borrower only in every other cell.
func TestCounterDeductsTheLargest(t *testing.T) {
	l, b, at := parties(t, sliding(50), sliding(50))
	b.borrows(l, 0, 30)
	at(1000)
	l.admits(20)
	l.has(20, 0)
	b.borrows(l, 1, 30)
	l.has(20, 0)
	equal(t, "more than the shadow covers", l.lends(b, 1, 31), 30)
	b.borrows(l, 2, 30) // within loan and shadow, too
	l.has(20, 0)
	at(1500)
	l.has(20, 0) // the shadow is down to 15, the loan is not
	at(2500)
	l.has(20, 10) // R[2], and half of the 20 of cell 1
}

// TestCounterDeductsEveryPeer: the largest is taken for each peer, and the peers add up. Of 50, 20
// are with one and 20 with another.
func TestCounterDeductsEveryPeer(t *testing.T) {
	l, b, at := parties(t, sliding(50), sliding(25))
	other := *b
	other.name = "third"
	l.lends(b, 0, 20)
	l.lends(&other, 0, 20)
	equal(t, "the third asks for more", l.lends(&other, 0, 40), 30)
	l.has(0, 0)
	at(1500)
	l.has(25, 25) // 50 - (20 + 30) x 0.5
}

// TestCounterReturnsAreNoSecondLoan: what was given back unspent leaves no shadow. The lender of 50
// lends 50 and gets 50 back; it has 50 in the next cell. If the return were a loan the other way,
// both would have a shadow of 50 there, and nothing left.
func TestCounterReturnsAreNoSecondLoan(t *testing.T) {
	l, b, at := parties(t, sliding(50), sliding(50))
	b.borrows(l, 0, 50)
	equal(t, "returned", b.gives(l, 0, Lend{Debit: Debit{Returned: 50}}).Row.Returned, 50)
	l.hears(b, 0, Credit{Announcement: Announcement{Returned: 50}})
	at(1000)
	l.has(50, 50)
	b.has(50, 50)
}

// TestCounterKeepsWhatFadingUseNeeds: use of the cell before counts as spent as far as it still
// weighs. The borrower used its 50 in cell 0. At 1000 it borrows 20 and uses 15, so of 70 it can
// give back 5. Had it given back all 20, the lender would use its 50 beside 50 + 15: 115. At 1100
// the 50 weigh 45, and 5 more are free.
func TestCounterKeepsWhatFadingUseNeeds(t *testing.T) {
	l, b, at := parties(t, sliding(50), sliding(50))
	b.admits(50)
	at(1000)
	b.borrows(l, 1, 20)
	b.admits(15)
	equal(t, "returned at 1000", b.gives(l, 1, Lend{Debit: Debit{Returned: 20}}).Row.Returned, 5)
	b.has(65, 0)
	l.hears(b, 1, Credit{Announcement: Announcement{Returned: 5}})
	l.has(35, 35)
	at(1100)
	equal(t, "returned at 1100", b.gives(l, 1, Lend{Debit: Debit{Returned: 20}}).Row.Returned, 10)
}
