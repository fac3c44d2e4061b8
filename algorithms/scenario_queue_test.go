//go:build !race

package algorithms

import (
	"slices"
	"testing"

	"github.com/quotad/quotad/quantity"
)

func queued(entitlement quantity.Units) Terms {
	return Terms{Kind: LeakyBucket, Window: 1000, Cell: 1000, Tick: 1, Entitlement: entitlement,
		Burst: 20}
}

// turns admits requests of 1 and checks when their turns come, in microseconds after the start.
func (p *party) turns(want ...int64) {
	p.Helper()
	var got []int64
	for range want {
		got = append(got, p.after()+p.admits(1))
	}
	if !slices.Equal(got, want) {
		p.Errorf("%s, at %d: turns at %d, want %d", p.name, p.after(), got, want)
	}
}

// TestTurnsAreComputedCellByCell: 10 in 1000 are one in 100; with 10 borrowed, one in 50. A
// borrowed rate does not count beyond its cell. Of six requests at 850, three are served by 1000,
// and the others one in 100. At one in 50 throughout, the last turn would come at 1100, when the
// lender already uses its rate again.
func TestTurnsAreComputedCellByCell(t *testing.T) {
	l, b, at := parties(t, queued(10), queued(10))
	at(850)
	b.borrows(l, 0, 10)
	b.turns(850, 900, 950, 1000, 1100, 1200)
}

// TestTurnsUseAPromise: rights promised for the next cell count in that cell, and in no later one.
func TestTurnsUseAPromise(t *testing.T) {
	l, b, at := parties(t, queued(10), queued(10))
	at(850)
	b.borrows(l, 1, 10)
	b.turns(850, 950, 1025) // half of the third is done by 1000, the other half takes 25
	b.turns(1075, 1125)
	at(1900)
	b.turns(1900, 1950, 2000, 2100)
}

// TestPromisedTurnsAreNotLent: the share of a cell may be lowered only from the last promised turn
// on. Five requests at 0 have turns until 400, and the last one takes until 500. Only then can the
// rate of cell 0 be lent, and before that only unpromised rights of the next cell. If it were lent
// at 0, the borrower's 20 in 1000 and the 10 already promised would run side by side: 30 for 20.
func TestPromisedTurnsAreNotLent(t *testing.T) {
	l, b, at := parties(t, queued(10), queued(10))
	l.turns(0, 100, 200, 300, 400)
	for _, early := range []quantity.Cell{0, 399, 450} {
		at(early)
		equal(t, "lent while turns are promised", l.lends(b, 0, 10), 0)
	}
	equal(t, "promised of the next cell", l.lends(b, 1, 4), 4)
	at(500)
	equal(t, "lent behind the last turn", l.lends(b, 0, 10), 10)
	l.has(0, 20)
	// the first finds an empty queue; its 1 is worked on from 1000 on, at the 6 in 1000 left there
	l.turns(500, 1167)
	at(1000)
	l.has(6, 18)
}

// TestPromisedTurnsKeepTheNextCell: turns at 900 and 1000 are promised. So nothing of cell 1 can be
// promised to a peer, and nothing borrowed can be given back.
func TestPromisedTurnsKeepTheNextCell(t *testing.T) {
	l, b, at := parties(t, queued(10), queued(10))
	at(900)
	l.turns(900, 1000)
	equal(t, "promised", l.lends(b, 1, 10), 0)
	at(1000)
	equal(t, "lent", l.lends(b, 1, 10), 0)
	at(1100)
	equal(t, "lent behind the last turn", l.lends(b, 1, 10), 10)

	l, b, _ = parties(t, queued(10), queued(10))
	b.borrows(l, 0, 10)
	b.turns(0, 50, 100)
	equal(t, "given back while turns are promised", b.gives(l, 0, Lend{Debit: Debit{Returned: 10}}).Row.Returned,
		0)
}

// TestTurnsNeverGoBack: a rising share does not bring promised turns forward, and no request
// overtakes another. Five requests have turns until 400. At 50 the borrower gets 90 more, one in
// 10. All that waits would be done at 95, but the next turn is not before the last promised one is
// over, at 499 or later.
func TestTurnsNeverGoBack(t *testing.T) {
	l, b, at := parties(t, queued(90), queued(10))
	b.turns(0, 100, 200, 300, 400)
	at(50)
	b.borrows(l, 0, 90)
	delay := b.admits(1)
	if turn := 50 + delay; turn < 499 || turn > 500 {
		t.Errorf("turn at %d, want it when the one at 400 is over", turn)
	}
}

// TestQueueRoom: at most 20 wait or are in service. A request of 3 waits until there is room for 3,
// and one above 20 for ever.
func TestQueueRoom(t *testing.T) {
	l, _, at := parties(t, queued(10), queued(10))
	l.admits(20)
	l.denies(3, 300)
	l.denies(21, -1)
	at(299)
	l.denies(3, 1)
	at(300)
	equal(t, "delay", l.admits(3), 1700)
}

// TestAQueueIsLostWhileTheRegionHasNone: a store lost a queue of 20, and its region is not sure of its
// documents, which gives it no part of any limit. What was admitted without the store waits until
// the region has its part again: charged to a queue of nothing, it would leave room for what is
// promised still.
func TestAQueueIsLostWhileTheRegionHasNone(t *testing.T) {
	var w Twin
	at := func(now quantity.StoreTime) Fence { return Fence{Generation: w.Generation, Epoch: "1-e", Clock: now} }
	book := func(now quantity.StoreTime, on Terms) bool {
		return w.Book(now, Book{Fence: at(now), Target: Target{Key: "k", Terms: on}, Node: "n1", Units: 1}).Done
	}
	used := func(now quantity.StoreTime) quantity.Units {
		return w.Inspect(now, Inspect{Fence: at(now), Target: Target{Key: "k", Terms: queued(10)}}).State.Used
	}
	w.Open(500, Open{Generation: 7, Region: "a", Epoch: "1-e", Lost: true, Seen: 500})
	none := queued(0)
	none.Burst = 0
	equal(t, "charged while the region has no queue", book(600, none), false)
	equal(t, "charged to a queue that begins full", book(700, queued(10)), true)
	equal(t, "used when it opens", used(2000), 21)
	equal(t, "used half a window later", used(2500), 16)
}
