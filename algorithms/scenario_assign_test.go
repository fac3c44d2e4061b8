//go:build !race

package algorithms

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/quantity"
)

// assigns is an assign call of a node of the party, about cell k.
func (p *party) assigns(node string, k quantity.Cell, c Assign) Assigned {
	p.Helper()
	c.Fence, c.Key, c.Terms, c.Holder, c.Cell = p.guard(), "k", p.terms, node, p.cell(k)
	return p.Assign(*p.now, c)
}

// holds makes what a node ever held of cell k reach a sum, and checks what it then holds of that,
// and what more could be assigned.
func (p *party) holds(node string, k quantity.Cell, c Assign, held, spare quantity.Units) {
	p.Helper()
	g := p.assigns(node, k, c)
	if g.Status != StatusOK || g.Held-g.Returned != held || g.Spare != spare {
		p.Errorf("%s, at %d: %s: %s holds %d - %d of cell %d, and %d are left; want %d and %d",
			p.name, p.after(), g.Status, node, g.Held, g.Returned, k, g.Spare, held, spare)
	}
}

// TestWhatIsAssignedIsNotAdmitted: of a rate of 50 in 1000 a node holds 30 from 0 on. The empty
// bucket is refilled with the other 20: at 500 it has 10, not 25. The region's share is still 50.
func TestWhatIsAssignedIsNotAdmitted(t *testing.T) {
	l, _, at := parties(t, tokened(50, 50), tokened(50, 50))
	l.admits(50)
	l.holds("n1", 0, Assign{Held: 30}, 30, 20)
	at(500)
	l.has(50, 10)
	l.denies(11, 50)
	l.admits(10)
}

// TestTheStoreIsSettledBeforeItAssigns: 50 until 400, and 20 from then on: 20 + 4 at 600. One
// refill at the new rate would make 12 of them.
func TestTheStoreIsSettledBeforeItAssigns(t *testing.T) {
	l, _, at := parties(t, tokened(50, 50), tokened(50, 50))
	l.admits(50)
	at(400)
	l.holds("n1", 0, Assign{Held: 30}, 30, 20)
	l.has(50, 20)
	at(600)
	l.has(50, 24)
}

// TestWhatIsAssignedIsNotLent: of 50 a node holds 30, and 20 can be lent. Had all 50 been lent, the
// borrower and the Envoys would have 80.
func TestWhatIsAssignedIsNotLent(t *testing.T) {
	l, b, _ := parties(t, tokened(50, 50), tokened(50, 50))
	l.holds("n1", 0, Assign{Held: 30}, 30, 20)
	g := l.gives(b, 0, Lend{Debit: Debit{Lent: 50}})
	equal(t, "lent", g.Row.Lent, 20)
	equal(t, "left to lend", g.Spare, 0)
	l.has(30, 50)
	l.holds("n1", 0, Assign{Held: 31}, 30, 0)
}

// TestWhatIsAssignedIsNotReturned: the borrower has 50 + 40, and its nodes hold 80. Of the 40 it
// can return 10, although it keeps nothing for itself.
func TestWhatIsAssignedIsNotReturned(t *testing.T) {
	l, b, _ := parties(t, tokened(50, 50), tokened(50, 50))
	b.borrows(l, 0, 40)
	b.holds("n1", 0, Assign{Held: 80}, 80, 10)
	equal(t, "returned", b.gives(l, 0, Lend{Debit: Debit{Returned: 40}}).Row.Returned, 10)
	b.has(80, 50)
}

// TestBorrowedRightsAreAssigned: depth one holds for loans. A region that has 50 of its own and 40
// borrowed may assign 90, and the lending cap does not bound it.
func TestBorrowedRightsAreAssigned(t *testing.T) {
	l, b, _ := parties(t, tokened(50, 50), tokened(50, 50))
	b.borrows(l, 0, 40)
	b.holds("n1", 0, Assign{Held: 100}, 90, 0)
	b.has(90, 50)
}

// TestAssignedRightsAreNoLoan: of 100 the cap lets 60 be lent. A node holds 40, and 60 are lent all
// the same. If the 40 were a loan, only 20 could be.
func TestAssignedRightsAreNoLoan(t *testing.T) {
	l, b, _ := parties(t, tokened(100, 100), tokened(50, 50))
	l.holds("n1", 0, Assign{Held: 40}, 40, 60)
	equal(t, "lent", l.gives(b, 0, Lend{Debit: Debit{Lent: 70, Cap: 60}}).Row.Lent, 60)
}

// TestAssignedRightsServeWhatIsKept: a region keeps 40 of its 50 for its own demand. Its node
// serves 30 of that by Envoys, so the store keeps 10 more: 10 can be lent. If the store kept 40
// beside the 30, nothing could be. A region that keeps less than is assigned lends all the rest.
func TestAssignedRightsServeWhatIsKept(t *testing.T) {
	l, b, _ := parties(t, tokened(50, 50), tokened(50, 50))
	l.holds("n1", 0, Assign{Held: 30}, 30, 20)
	equal(t, "lent", l.gives(b, 0, Lend{Debit: Debit{Lent: 50, Kept: 40}}).Row.Lent, 10)
	equal(t, "lent", l.gives(b, 0, Lend{Debit: Debit{Lent: 50, Kept: 5}}).Row.Lent, 20)
	other := *b
	other.name = "third"
	b.borrows(l, 1, 20)
	b.holds("n1", 1, Assign{Held: 30}, 30, 40)
	equal(t, "of the next cell", b.gives(&other, 1, Lend{Debit: Debit{Lent: 50, Kept: 40}}).Row.Lent, 30)
}

// TestTheStoreKeepsWhatNodesLeave: nodes leave 10 of 50 to the store, whoever asks and in whatever
// order.
func TestTheStoreKeepsWhatNodesLeave(t *testing.T) {
	l, _, at := parties(t, tokened(50, 50), tokened(50, 50))
	l.admits(50)
	l.holds("n1", 0, Assign{Held: 25, Kept: 10}, 25, 15)
	l.holds("n2", 0, Assign{Held: 25, Kept: 10}, 15, 0)
	l.holds("n1", 0, Assign{Held: 26, Kept: 10}, 25, 0)
	l.holds("n1", 0, Assign{Held: 26, Kept: -10}, 26, 9)
	at(500)
	l.has(50, 4) // 10 until the last call, at the same time; 9 since: 4.5
}

// TestHoldingTwiceHoldsOnce: a call names the sums to reach. Sent three times, it holds 20 once; an
// older one that comes late changes nothing, and what was returned is returned once.
func TestHoldingTwiceHoldsOnce(t *testing.T) {
	l, _, _ := parties(t, tokened(50, 50), tokened(50, 50))
	for range 3 {
		l.holds("n1", 0, Assign{Held: 20}, 20, 30)
	}
	for range 3 {
		l.holds("n1", 0, Assign{Held: 20, Returned: 5}, 15, 35)
	}
	l.holds("n1", 0, Assign{Held: 10}, 15, 35)
	l.holds("n1", 0, Assign{Held: 30, Returned: 5}, 25, 25)
}

// TestMoreThanIsHeldIsNotReturned: a node that held 20 returns 20 at most, and has held 10 anew
// when it asks for 30 in all.
func TestMoreThanIsHeldIsNotReturned(t *testing.T) {
	l, _, _ := parties(t, tokened(50, 50), tokened(50, 50))
	l.holds("n1", 0, Assign{Returned: 7}, 0, 50)
	l.holds("n1", 0, Assign{Held: 20}, 20, 30)
	l.holds("n1", 0, Assign{Held: 20, Returned: 60}, 0, 50)
	l.has(50, 50)
	l.holds("n1", 0, Assign{Held: 30, Returned: 20}, 10, 40)
	l.holds("n2", 0, Assign{Returned: 10}, 0, 40) // another node returns nothing of that
}

// TestReturnedRightsAreTheStoresAgain: the rate is the store's from the return on, and never
// catches up. 50 less 30 until 400, and 50 until 600: 8 + 10.
func TestReturnedRightsAreTheStoresAgain(t *testing.T) {
	l, _, at := parties(t, tokened(50, 50), tokened(50, 50))
	l.admits(50)
	l.holds("n1", 0, Assign{Held: 30}, 30, 20)
	at(400)
	l.holds("n1", 0, Assign{Held: 30, Returned: 30}, 0, 50)
	l.has(50, 8)
	at(600)
	l.has(50, 18)
}

// TestAssignedRightsEndWithTheirCell: 30 of 50 are held in cell 0, and nothing after that: the node
// that held them may be gone. At 1200 the bucket has 20 x 1 + 50 x 0.2.
func TestAssignedRightsEndWithTheirCell(t *testing.T) {
	l, _, at := parties(t, tokened(50, 50), tokened(50, 50))
	l.admits(50)
	l.holds("n1", 0, Assign{Held: 30}, 30, 20)
	at(1200)
	l.has(50, 30)
	equal(t, "a finished cell", l.assigns("n1", 0, Assign{Held: 31, Returned: 30}).Status,
		StatusFinished)
	l.has(50, 30)
}

// TestTheNextCellIsAssigned: rights of the next cell are held before it opens, and count there
// alone. Its loans and they are of the same rights. Those of the cell after it are nobody's yet.
func TestTheNextCellIsAssigned(t *testing.T) {
	l, b, at := parties(t, tokened(50, 50), tokened(50, 50))
	l.admits(50)
	l.holds("n1", 1, Assign{Held: 30}, 30, 20)
	equal(t, "a cell too early", l.assigns("n1", 2, Assign{Held: 1}).Status, StatusFinished)
	equal(t, "of the next cell", l.lends(b, 1, 50), 20)
	s := l.state()
	equal(t, "share", s.Share, 50)
	equal(t, "next share", s.NextShare, 30)
	at(500)
	l.has(50, 25)
	at(1000)
	l.has(30, 50)
	l.admits(50)
	at(1500)
	l.has(30, 0)
	l.holds("n1", 1, Assign{Held: 30, Returned: 10}, 20, 10)
	at(2000)
	l.has(50, 5)
}

// TestNothingIsAssignedOfClosedCells: what a store assigned before it lost its data is not known.
// So it holds no rights of that cell and the next, and assigns none.
func TestNothingIsAssignedOfClosedCells(t *testing.T) {
	l, _, at := parties(t, tokened(50, 50), tokened(50, 50))
	at(500)
	l.Flush()
	l.Open(*l.now, Open{Generation: 1, Region: l.name, Epoch: "1-e", Lost: true, Seen: *l.now})
	for k := range quantity.Cell(2) {
		g := l.assigns("n1", k, Assign{Held: 1})
		if g.Status != StatusRecovering || g.Held != 0 {
			t.Errorf("cell %d: %s, %d held", k, g.Status, g.Held)
		}
	}
	at(2000)
	l.holds("n1", 2, Assign{Held: 60}, 50, 0)
}

// TestALowerEntitlementIsNotAssigned: 30 of 50 are assigned when a document says 20. The store has
// nothing left, and has not less than nothing; what is assigned stays until the cell is over.
func TestALowerEntitlementIsNotAssigned(t *testing.T) {
	l, b, at := parties(t, tokened(50, 50), tokened(50, 50))
	l.admits(50)
	l.holds("n1", 0, Assign{Held: 30}, 30, 20)
	l.terms.Entitlement = 20
	l.holds("n1", 0, Assign{Held: 31}, 30, 0)
	equal(t, "lent", l.lends(b, 0, 5), 0)
	at(900)
	l.has(20, 0)
	at(1100)
	l.has(20, 2)
}

// TestNodesTakeNoRoomOfLoans: twelve nodes hold rights of this cell and the next for Envoys. The
// region lends all the same, and takes what it is lent: what it could not credit would be lost. And
// a bucket that is full of loans still assigns.
func TestNodesTakeNoRoomOfLoans(t *testing.T) {
	for _, terms := range []Terms{tokened(50, 50), fixed(50)} {
		l, b, _ := parties(t, terms, terms)
		for k := range quantity.Cell(2) {
			for i := range quantity.Units(12) {
				l.holds(fmt.Sprint("n", i), k, Assign{Held: 1}, 1, 50-i-1)
				b.holds(fmt.Sprint("n", i), k, Assign{Held: 1}, 1, 50-i-1)
			}
			equal(t, "lent", l.lends(b, k, 10), 10)
		}
		b.borrows(l, 0, 10)
		b.borrows(l, 1, 10)
		equal(t, "rights of this cell", b.state().Share, 60)
		equal(t, "rights of the next", b.state().NextShare, 60)
		for i := range MaxRows(terms.Kind) - 2 {
			peer := party{name: fmt.Sprint("region ", i)}
			equal(t, "lent to one more", l.lends(&peer, 1, 1), quantity.Units(1))
		}
		equal(t, "lent to one too many", l.lends(&party{name: "late"}, 1, 1), 0)
		l.holds("n12", 1, Assign{Held: 1}, 1, 50-12-10-quantity.Units(MaxRows(terms.Kind)-2)-1)
	}
}

// TestOneNodeTooManyHoldsNothing: as many nodes as may hold rights of a cell. One more is told that
// there is no room, and nothing else changes: the others go on, the next cell has room of its own,
// and what nobody holds is the store's.
func TestOneNodeTooManyHoldsNothing(t *testing.T) {
	l, b, at := parties(t, tokened(100, 100), tokened(100, 100))
	for i := range quantity.Units(MaxHolders) {
		l.holds(fmt.Sprint("n", i), 0, Assign{Held: 1}, 1, 100-i-1)
	}
	for range 2 {
		g := l.assigns("late", 0, Assign{Held: 7})
		if g.Status != StatusCrowded || g.Held != 0 || g.Now != *l.now || g.Free != 100 {
			t.Errorf("one node too many: %+v", g)
		}
	}
	l.holds("late", 0, Assign{}, 0, 0) // it only asks what it held
	l.holds("n3", 0, Assign{Held: 4, Returned: 1}, 3, 34)
	equal(t, "lent", l.lends(b, 0, 30), 30)
	l.holds("n5", 0, Assign{Held: 9, Returned: 1}, 5, 0)
	l.holds("late", 1, Assign{Held: 7}, 7, 93)
	at(1000)
	l.has(100, 100)
	l.holds("late", 1, Assign{Held: 7}, 7, 93)
	l.holds("n0", 1, Assign{Held: 1}, 1, 92)
}

// TestANodeWithoutRoomIsToldThatItsHoldIsLost: the bucket was lost and restored, and others hold
// rights of it now. A node that held some is told first that it holds none any more.
func TestANodeWithoutRoomIsToldThatItsHoldIsLost(t *testing.T) {
	l, _, _ := parties(t, tokened(100, 100), tokened(100, 100))
	for i := range MaxHolders {
		l.assigns(fmt.Sprint("n", i), 0, Assign{Held: 1})
	}
	l.holds("late", 0, Assign{Known: 5, Held: 7, Returned: 2}, 0, 0)
	equal(t, "then", l.assigns("late", 0, Assign{Held: 2}).Status, StatusCrowded)
}

// TestFinishedRowsCrowdNobodyOut: a bucket is crowded by rows of a cell that is over, and nothing
// was written since. Whoever asks for rights of the new cell gets them, as if the rows were gone.
func TestFinishedRowsCrowdNobodyOut(t *testing.T) {
	l, b, at := parties(t, tokened(100, 100), tokened(50, 50))
	for i := range MaxHolders {
		l.assigns(fmt.Sprint("n", i), 0, Assign{Held: 1})
	}
	for i := range MaxRows(TokenBucket) {
		l.lends(&party{name: fmt.Sprint("region ", i)}, 0, 1)
	}
	equal(t, "lent before", l.lends(b, 0, 1), 0)
	at(1000)
	clone := party{T: t, Twin: *l.Clone(), name: l.name, terms: l.terms, now: l.now}
	l.holds("late", 1, Assign{Held: 1}, 1, 99)
	equal(t, "lent", clone.lends(b, 1, 1), 1)
}

// TestANodeIsNoRegion: a node may have a region's name. What it holds and what that region borrowed
// are two rows.
func TestANodeIsNoRegion(t *testing.T) {
	l, b, _ := parties(t, tokened(50, 50), tokened(50, 50))
	l.lends(b, 0, 10)
	l.holds(b.name, 0, Assign{Held: 15}, 15, 25)
	l.holds(b.name, 0, Assign{Held: 15, Returned: 1}, 14, 26)
	g := l.Inspect(*l.now, Inspect{Fence: l.guard(), Target: Target{Key: "k", Terms: l.terms}})
	want := []PeerRow{{Cell: l.cell(0), Peer: "=borrower", Row: Row{Lent: 15, Regained: 1}},
		{Cell: l.cell(0), Peer: "borrower", Row: Row{Lent: 10}}}
	if len(g.Rows) != 2 || g.Rows[0] != want[0] || g.Rows[1] != want[1] {
		t.Errorf("%+v, want %+v", g.Rows, want)
	}
}

// TestAssignedUnitsOfAWindowAreSpent: of 50 units a node holds 30 for Envoys. The store admits the
// other 20, and what it shows counts the 30 as used. In the next window all begins anew.
func TestAssignedUnitsOfAWindowAreSpent(t *testing.T) {
	l, _, at := parties(t, fixed(50), fixed(50))
	l.admits(5)
	l.holds("n1", 0, Assign{Held: 30}, 30, 15)
	l.has(50, 15)
	equal(t, "used", l.state().Used, 35)
	equal(t, "reset", l.state().Reset, 1000)
	l.admits(15)
	l.denies(1, 1000)
	l.holds("n2", 0, Assign{Held: 1}, 0, 0)
	l.holds("n1", 0, Assign{Held: 30, Returned: 10}, 20, 10)
	l.holds("n2", 0, Assign{Held: 1}, 1, 9)
	at(1000)
	l.has(50, 50)
	l.holds("n1", 1, Assign{Held: 50}, 50, 0)
}

// TestUnitsOfTheNextWindowAreAssigned: a node holds units of the next window before it opens, and
// nobody else gets them.
func TestUnitsOfTheNextWindowAreAssigned(t *testing.T) {
	l, b, at := parties(t, fixed(50), fixed(50))
	at(900)
	l.holds("n1", 1, Assign{Held: 30}, 30, 20)
	l.has(50, 50)
	equal(t, "next share", l.state().NextShare, 50)
	equal(t, "lent", l.lends(b, 1, 50), 20)
	at(1000)
	l.has(30, 0)
	l.denies(1, 1000)
}

// TestAssignedUnitsAreNotLentOrReturned: of 50 of its own and 40 borrowed a region's node holds 80.
// Ten are left to give back.
func TestAssignedUnitsAreNotLentOrReturned(t *testing.T) {
	l, b, _ := parties(t, fixed(50), fixed(50))
	b.borrows(l, 0, 40)
	b.holds("n1", 0, Assign{Held: 80}, 80, 10)
	g := b.gives(l, 0, Lend{Debit: Debit{Returned: 40, Lent: 50}})
	equal(t, "returned", g.Row.Returned, 10)
	equal(t, "lent", g.Row.Lent, 0)
	b.denies(1, 1000)
}

// TestALostHoldCountsAsUsed: the key is deleted. What was seen of it, the assigned units with the
// others, is restored as used. The node that held some asks for more, and is told that it holds
// none any more; what it asks for after that comes on top.
func TestALostHoldCountsAsUsed(t *testing.T) {
	l, _, _ := parties(t, fixed(50), fixed(50))
	l.terms.Recovered = true
	l.admits(5)
	l.holds("n1", 0, Assign{Held: 30}, 30, 15)
	seen := l.state()
	l.Delete("k")
	target := Target{Key: "k", Terms: l.terms, ExistsUntil: seen.ExistsUntil}
	g := l.Assign(*l.now, Assign{Fence: l.guard(), Target: target, Holder: "n1", Cell: l.cell(0),
		Known: 30, Held: 40})
	equal(t, "status", g.Status, StatusLost)
	l.Restore(*l.now, Restore{Fence: l.guard(), Target: target, LostAt: g.LostAt,
		Known: Known{Use: Use{Cell: seen.Cell, Units: seen.Used, At: *l.now}}})
	equal(t, "used", l.state().Used, 35)
	l.holds("n1", 0, Assign{Known: 30, Held: 40}, 0, 15)
	l.holds("n1", 0, Assign{Held: 10}, 10, 5)
	equal(t, "used", l.state().Used, 45)
}
