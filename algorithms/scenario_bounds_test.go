//go:build !race

package algorithms

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

// TestNoTurnIsFartherThanAFullQueue: 10 a window and 20 waiting, so that no request waits longer
// than two windows. Borrowing 10 more in each cell makes room twice as fast, but promised turns
// stay. If only the room counted, the delays would grow by nearly a window with each cell.
func TestNoTurnIsFartherThanAFullQueue(t *testing.T) {
	lender, borrower, at := parties(t, queued(10), queued(10))
	for cell := range quantity.Cell(6) {
		for _, into := range []quantity.Cell{0, 900} {
			at(cell*1000 + into)
			for {
				v, ok := borrower.asks(1)
				if !ok {
					break
				}
				if v.Delay > 2000 {
					t.Fatalf("cell %d, at %d: a delay of %d", cell, into, v.Delay)
				}
			}
			if into == 0 {
				borrower.borrows(lender, cell, 10)
			}
		}
	}
}

// TestBoundTurnsKeepTheirPace: five requests at 0 have turns up to 400. With 90 more borrowed at
// 50, the next turns come 10 apart after the last one, and none of them a tick sooner.
func TestBoundTurnsKeepTheirPace(t *testing.T) {
	lender, borrower, at := parties(t, queued(90), queued(10))
	for range 5 {
		borrower.admits(1)
	}
	at(50)
	borrower.borrows(lender, 0, 90)
	last := int64(-1)
	for range 5 {
		turn := 50 + borrower.admits(1)
		if last >= 0 && turn < last+10 {
			t.Errorf("turns at %d and %d: faster than 100 a window", last, turn)
		}
		last = turn
	}
}

// TestTurnsOutlastALoss: 40 requests at 0 fill the queue for four windows. The store is lost at
// 500. Until the turns are over the share is not lent; otherwise the borrower would serve beside
// them.
func TestTurnsOutlastALoss(t *testing.T) {
	terms := queued(10)
	terms.Burst = 40
	lender, borrower, at := parties(t, terms, terms)
	for range 40 {
		lender.admits(1)
	}
	at(500)
	lender.Flush()
	lender.Open(*lender.now, Open{Generation: 1, Epoch: "1-e", Lost: true, Seen: *lender.now})
	for cell := quantity.Cell(2); cell < 6; cell++ {
		at(cell * 1000)
		if g := lender.gives(borrower, cell, Lend{Debit: Debit{Lent: 10}}); g.Row.Lent > 0 {
			t.Errorf("cell %d: lent %d while turns are promised", cell, g.Row.Lent)
		}
	}
	at(6000)
	if g := lender.gives(borrower, 6, Lend{Debit: Debit{Lent: 10}}); g.Row.Lent != 10 {
		t.Errorf("after the last turn: lent %d", g.Row.Lent)
	}
}

// TestATickThatHasBegunDoesNotCount: with ticks of 200, 10 of 10 are taken at 199; at 200 no tick
// has passed since, and nothing has been refilled or served.
func TestATickThatHasBegunDoesNotCount(t *testing.T) {
	for _, terms := range []Terms{tokened(10, 10), queued(10)} {
		terms.Tick, terms.Burst = 200, 10
		l, _, at := parties(t, terms, terms)
		at(199)
		l.admits(10)
		at(200)
		if _, ok := l.asks(2); ok {
			t.Errorf("%s: 12 of 10 within a microsecond", terms.Kind)
		}
		at(400)
		if _, ok := l.asks(2); !ok {
			t.Errorf("%s: a tick later there is still no room for 2", terms.Kind)
		}
	}
}

// TestARaisedRateDoesNotCountForThePast: 20 in 1000, all gone at 0; at 500 a document says 200. The
// 500 that have passed refill 10, not 100, and 20 is asked for in vain. From then on 200 in 1000 count.
// A rate that was lowered counts for the past as well, as what the higher one made is not known.
func TestARaisedRateDoesNotCountForThePast(t *testing.T) {
	for _, terms := range []Terms{tokened(20, 20), queued(20)} {
		l, _, at := parties(t, terms, terms)
		l.admits(20)
		at(500)
		l.terms.Entitlement = 200
		equal(t, "free when the rate is raised", l.state().Free, 10)
		l.asks(20)
		at(510)
		equal(t, "free later", l.state().Free, 12)
		l.terms.Entitlement = 20
		at(520)
		equal(t, "free when it is lowered", l.state().Free, 10)
	}
}

// TestAnotherTickConvertsTheLevel: raising a limit may make its ticks longer. What was taken stays
// taken: 18 of 20 are gone, so a limit of 30 leaves at most 12, not 30. Refill goes on.
func TestAnotherTickConvertsTheLevel(t *testing.T) {
	for _, terms := range []Terms{tokened(20, 20), queued(20)} {
		terms.Burst = 20
		for _, ticks := range [][2]int64{{1, 10}, {10, 1}} {
			l, _, at := parties(t, terms, terms)
			l.terms.Tick = ticks[0]
			l.admits(18)
			l.terms.Tick, l.terms.Entitlement, l.terms.Burst = ticks[1], 30, 30
			if free := l.state().Free; free > 12 {
				t.Errorf("%s, ticks of %d, then %d: %d free after 18", terms.Kind, ticks[0],
					ticks[1], free)
			}
			l.asks(30) // from here on it refills at the new rate
			at(1000)
			if free := l.state().Free; free < 28 {
				t.Errorf("%s, ticks of %d, then %d: %d free a window later", terms.Kind, ticks[0],
					ticks[1], free)
			}
		}
	}
}
