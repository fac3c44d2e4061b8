//go:build !race

package algorithms

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

func fixed(entitlement quantity.Units) Terms {
	return Terms{Kind: FixedWindow, Window: 1000, Cell: 1000, Tick: 1, Entitlement: entitlement}
}

// TestOnlyUnspentUnitsAreLent: a debit only while used + x <= S. L = 100 = 60 + 40. The lender has
// used 50 of its 60 and is asked for 40. It can give 10: then each has 50. Had it given 40, the
// borrower would admit 80 beside the 50: 130.
func TestOnlyUnspentUnitsAreLent(t *testing.T) {
	l, b, _ := parties(t, fixed(60), fixed(40))
	l.admits(50)
	equal(t, "lent", l.lends(b, 0, 40), 10)
	b.hears(l, 0, Credit{Announcement: Announcement{Lent: 10}})
	l.has(50, 0)
	b.has(50, 50)
	b.admits(50)
	b.denies(1, 1000)
	l.denies(1, 1000)
}

// TestAskingTwiceLendsOnce: a call names the value that R should reach, so a retried request debits
// nothing twice. Of 60, 20 are asked for three times: 40 are left, not 0.
func TestAskingTwiceLendsOnce(t *testing.T) {
	l, b, _ := parties(t, fixed(60), fixed(40))
	for range 3 {
		equal(t, "lent", l.lends(b, 0, 20), 20)
	}
	l.has(40, 40)
}

// TestHearingTwiceCreditsOnce: rows are cumulative and the borrower keeps their maximum, so a
// message that comes twice or late changes nothing. From 10 and 20, heard as 20, 20, 10, it holds
// 40 + 20, not 40 + 50 or 40 + 10.
func TestHearingTwiceCreditsOnce(t *testing.T) {
	l, b, _ := parties(t, fixed(60), fixed(40))
	l.lends(b, 0, 20)
	for _, lent := range []quantity.Units{20, 20, 10} {
		b.hears(l, 0, Credit{Announcement: Announcement{Lent: lent}})
		b.has(60, 60)
	}
}

// TestBorrowedRightsAreNeverLentOn: the net loans of a region stay within its own entitlement. The
// borrower holds 40 of its own and 60 of the lender's, and lends 40. If it lent the 60 on, they
// could come back to the lender, where they already count as missing.
func TestBorrowedRightsAreNeverLentOn(t *testing.T) {
	l, b, _ := parties(t, fixed(60), fixed(40))
	b.borrows(l, 0, 60)
	b.has(100, 100)
	equal(t, "lent of 40 + 60", b.lends(l, 0, 100), 40)
	b.has(60, 60)
}

// TestReturns: borrowed units are given back as far as they are unspent. The borrower loses them at
// once, the lender has them when it hears of it. The borrower of 40 holds 100, has used 70 and
// gives back 30. Until the lender hears of it, nobody has the 30.
func TestReturns(t *testing.T) {
	l, b, _ := parties(t, fixed(60), fixed(40))
	b.borrows(l, 0, 60)
	b.admits(70)
	equal(t, "returned", b.gives(l, 0, Lend{Debit: Debit{Returned: 60}}).Row.Returned, 30)
	b.has(70, 0)
	l.has(0, 0)
	for range 2 {
		l.hears(b, 0, Credit{Announcement: Announcement{Returned: 30}})
		l.has(30, 30)
	}
	equal(t, "lent after the return", l.lends(b, 0, 90), 90) // R = 60, and the 30 once more
	l.has(0, 0)
}

// TestMoreThanWasGivenIsNotBelieved: a peer that says it returned more than it was lent, or lent
// more than it has, is refused, whatever went wrong there. With 61 of the peer's 60 the borrower
// would hold 101 of L = 100.
func TestMoreThanWasGivenIsNotBelieved(t *testing.T) {
	l, b, _ := parties(t, fixed(60), fixed(40))
	equal(t, "61 of 60", b.hears(l, 0, Credit{Announcement: Announcement{Lent: 61}}).Status, StatusImplausible)
	l.lends(b, 0, 20)
	equal(t, "21 of 20 returned", l.hears(b, 0, Credit{Announcement: Announcement{Returned: 21}}).Status, StatusImplausible)
	l.has(40, 40)
	b.has(40, 40)
}

// TestRightsEndWithTheirCell: rights of one cell mean nothing in the next, where everybody begins
// at F again. A late credit is ignored, and a finished cell is not lent from. Otherwise the
// lender's 60 and the borrower's 100 would be held in one cell.
func TestRightsEndWithTheirCell(t *testing.T) {
	l, b, at := parties(t, fixed(60), fixed(40))
	l.lends(b, 0, 60)
	l.denies(1, 1000)
	at(1000)
	equal(t, "late credit", b.hears(l, 0, Credit{Announcement: Announcement{Lent: 60}}).Status, StatusFinished)
	equal(t, "late debit", l.gives(b, 0, Lend{Debit: Debit{Lent: 61}}).Status, StatusFinished)
	equal(t, "a cell too early", l.gives(b, 3, Lend{Debit: Debit{Lent: 1}}).Status, StatusFinished)
	l.has(60, 60)
	b.has(40, 40)
}

// TestPromisesMoveAtTheBoundary: rights of the next cell can be moved before it opens, and count
// only there.
func TestPromisesMoveAtTheBoundary(t *testing.T) {
	l, b, at := parties(t, fixed(60), fixed(40))
	l.admits(60)
	b.borrows(l, 1, 60)
	b.denies(41, 1000) // there will be 100 then
	at(1000)
	l.has(0, 0)
	b.has(100, 100)
}

// TestTimeNeverGoesBack: a clock stepping back cannot reopen a finished cell. At 1990 the 60 of
// cell 1 are used. If cell 0 opened again at 500, 60 more could be used under its label.
func TestTimeNeverGoesBack(t *testing.T) {
	l, _, at := parties(t, fixed(60), fixed(40))
	l.admits(60)
	at(1990)
	l.admits(60)
	at(500)
	l.denies(1, 1500) // the store's time is still about 1990, and passes 2000 when its clock does
	equal(t, "cell", l.state().Cell, l.cell(1))
}
