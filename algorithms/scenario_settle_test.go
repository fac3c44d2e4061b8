//go:build !race

package algorithms

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

// charged admits a cost and returns the receipt for it.
func (p *party) charged(receipt string, cost quantity.Units) Settle {
	p.Helper()
	p.admits(cost)
	return Settle{Receipt: receipt, At: *p.now, Cost: cost,
		Charges: []Charge{{Target: Target{Key: "k", Terms: p.terms},
			Cell: CellAt(*p.now, p.terms.Cell)}}}
}

// takesBack refunds a receipt and checks what became of it.
func (p *party) takesBack(c Settle, units quantity.Units, refusal Refusal) (repeated bool) {
	p.Helper()
	c.Fence = p.guard()
	g := p.Settle(*p.now, c)
	if g.Status != StatusOK {
		p.Fatalf("%s, at %d: refund: %s", p.name, p.after(), g.Status)
	}
	if got := g.Charges[0]; got.Back != units || got.Refusal != refusal {
		p.Errorf("%s, at %d: %d units given back, refused because %q; want %d, %q", p.name,
			p.after(), got.Back, got.Refusal, units, refusal)
	}
	return g.Repeated
}

// TestRefundIsIdempotent: one receipt gives its units back once, and gets the same answer again. Of
// 30 used, 20 come back: 10 are used, and stay 10.
func TestRefundIsIdempotent(t *testing.T) {
	for _, terms := range []Terms{fixed(60), sliding(60), logged(60), tokened(60, 60)} {
		l, _, _ := parties(t, terms, terms)
		c := l.charged("r1", 20)
		l.charged("r2", 10)
		equal(t, "repeated", l.takesBack(c, 20, NotRefused), false)
		equal(t, "repeated", l.takesBack(c, 20, NotRefused), true)
		equal(t, string(terms.Kind)+": free", l.state().Free, 50)
	}
}

// TestRefundIsNeverBelowZero: the charge is gone already (after a reset, or in a store that lost
// it). 20 given back on 5 used leave 0, not 15 below, which would admit 75 of 60. The log does not
// find the entry and touches no other, and a token bucket has been full since.
func TestRefundIsNeverBelowZero(t *testing.T) {
	tests := []struct {
		terms   Terms
		units   quantity.Units
		free    quantity.Units
		refusal Refusal
	}{
		{fixed(60), 5, 60, NotRefused},
		{sliding(60), 5, 60, NotRefused},
		{logged(60), 0, 55, NotRefused},
		{tokened(60, 60), 0, 55, NoLongerWeighs},
	}
	for _, test := range tests {
		l, _, at := parties(t, test.terms, test.terms)
		c := l.charged("r1", 20)
		at(1) // the log's entries are told apart by their time
		l.Reset(*l.now, Reset{Fence: l.guard(), Target: Target{Key: "k", Terms: test.terms}})
		l.admits(5)
		l.takesBack(c, test.units, test.refusal)
		equal(t, string(test.terms.Kind)+": free", l.state().Free, test.free)
	}
}

// TestRefundOfTheCellItWasChargedIn: a fixed window gives nothing back in the next cell, where the
// units would come out of other use. The counter takes them from the cell before as long as that
// weighs, and refuses a cell later.
func TestRefundOfTheCellItWasChargedIn(t *testing.T) {
	l, _, at := parties(t, fixed(60), fixed(40))
	c := l.charged("r1", 20)
	at(1000)
	l.admits(60)
	l.takesBack(c, 0, NoLongerWeighs)
	l.has(60, 0)

	l, _, at = parties(t, sliding(60), sliding(40))
	first, late := l.charged("r1", 40), l.charged("r2", 20)
	at(1500)
	l.admits(20)
	l.has(60, 10) // 20, and 60 x 0.5
	l.takesBack(first, 40, NotRefused)
	l.has(60, 30) // 20, and 20 x 0.5
	at(2000)
	l.takesBack(late, 0, NoLongerWeighs)
	l.has(60, 40)
}

// TestRefundRemovesTheVeryEntry: the log removes the entry of the decision, not the oldest or the
// newest. 20 at 0, 10 at 300 and 5 at 600. With the 10 gone, 40 + 15 fit until 1000, and 55 + 0
// after the 20 have left.
func TestRefundRemovesTheVeryEntry(t *testing.T) {
	l, _, at := parties(t, logged(60), logged(40))
	l.admits(20)
	at(300)
	c := l.charged("r1", 10)
	at(600)
	l.admits(5)
	l.takesBack(c, 10, NotRefused)
	l.has(60, 35)
	at(1000)
	l.has(60, 55)
	at(1300)
	l.has(60, 55) // nothing left at 1300
	at(1600)
	l.has(60, 60)

	l, _, at = parties(t, logged(60), logged(40))
	c = l.charged("r1", 10)
	at(999)
	late := c
	late.Receipt = "r2"
	l.takesBack(c, 10, NotRefused)
	at(1000)
	l.takesBack(late, 0, NoLongerWeighs)
}

// TestTokensAreRefundedWhileTheyMatter: if the bucket has been full since the charge, the refill
// has made up for it, and giving the tokens back would pay twice. 60 in 1000 up to 60: 6 charged at
// 0 are back at 100. With 30 more charged at 50, the bucket was never full between 0 and 600.
func TestTokensAreRefundedWhileTheyMatter(t *testing.T) {
	l, _, at := parties(t, tokened(60, 60), tokened(60, 60))
	c := l.charged("r1", 6)
	at(101)
	l.admits(30)
	l.takesBack(c, 0, NoLongerWeighs)
	equal(t, "free after a refund too late", l.state().Free, 30)

	l, _, at = parties(t, tokened(60, 60), tokened(60, 60))
	c = l.charged("r1", 6)
	at(50)
	l.admits(30)
	at(100)
	equal(t, "free", l.state().Free, 30) // 60 - 6 - 30 + 60 x 0.1
	l.takesBack(c, 6, NotRefused)
	equal(t, "free after the refund", l.state().Free, 36)
}

// TestTokensAreRefundedUpToTheCapacity: 60 charged at 0 are given back at 500, when 30 are refilled
// already.
func TestTokensAreRefundedUpToTheCapacity(t *testing.T) {
	l, _, at := parties(t, tokened(60, 60), tokened(60, 60))
	c := l.charged("r1", 60)
	at(500)
	l.takesBack(c, 30, NotRefused)
	equal(t, "free", l.state().Free, 60)
}

// TestATurnIsNotRefunded: the turns after a queue's turn are promised already.
func TestATurnIsNotRefunded(t *testing.T) {
	l, _, _ := parties(t, queued(10), queued(10))
	c := l.charged("r1", 5)
	l.takesBack(c, 0, TurnPromised)
	equal(t, "free", l.state().Free, 15)
}

// TestResetClearsUseAndNothingElse: the loan of 20 is still missing, what was borrowed is still
// there, and the other bucket of the store is unchanged. A reset that forgot the rows would give 60
// here beside the 20 there.
func TestResetClearsUseAndNothingElse(t *testing.T) {
	queue := queued(60)
	queue.Burst = 60
	for _, terms := range []Terms{fixed(60), sliding(60), logged(60), tokened(60, 60), queue} {
		l, b, at := parties(t, terms, terms)
		b.borrows(l, 0, 20)
		before := l.state().Free
		at(100)
		other := LimitTarget{Target: Target{Key: "other", Terms: fixed(10)}}
		l.onBoth(other, 7)
		g := l.Reset(*l.now, Reset{Fence: l.guard(), Target: Target{Key: "k", Terms: terms}})
		equal(t, string(terms.Kind)+": free before", g.Free, before-7)
		l.has(40, before)
		equal(t, string(terms.Kind)+": 7 and 4 of 10 in the other bucket",
			l.onBoth(other, 4).Answers[0].Admitted, false)
	}
}
