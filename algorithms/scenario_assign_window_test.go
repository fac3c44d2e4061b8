//go:build !race

package algorithms

import "testing"

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
