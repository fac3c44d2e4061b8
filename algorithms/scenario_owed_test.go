//go:build !race

package algorithms

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

// owes charges the party's bucket, whatever is left, and returns what did not fit.
func (p *party) owes(cost, mostOwed quantity.Units) (owed quantity.Units) {
	p.Helper()
	b := p.bucket()
	b.Always, b.MostOwed = true, mostOwed
	d := p.Decide(*p.now, Decide{Fence: p.guard(), Commit: true, Costs: []quantity.Units{cost}, Buckets: []LimitTarget{b}})
	equal(p.T, "status", d.Status, StatusOK)
	equal(p.T, "admitted", d.Answers[0].Admitted, true)
	return d.Answers[0].Verdicts[0].Owed
}

// TestWhatDoesNotFitIsOwed: of 100 some 70 are used, and an answer that costs 50 ends: 20 of them are
// owed. Then nothing fits until what is owed counts no more. In a fixed window that is when it ends. In
// the other kinds it takes as long as if there had been room for all.
func TestWhatDoesNotFitIsOwed(t *testing.T) {
	for kind, free := range map[Kind][3]quantity.Units{ // at 1000, 1500 and 2000
		FixedWindow:          {100, 100, 100},
		SlidingWindowCounter: {0, 38, 100}, // half of the 123 is left at 1500
		SlidingWindowLog:     {100, 100, 100},
		TokenBucket:          {77, 100, 100}, // 23 below zero, and 100 refilled
	} {
		terms := Terms{Kind: kind, Window: 1000, Cell: 1000, Tick: 1, Entitlement: 100}
		if kind.Bucket() {
			terms.Burst = 100
		}
		l, _, at := parties(t, terms, terms)
		l.admits(70)
		equal(t, string(kind)+": owed", l.owes(50, 1000), 20)
		equal(t, string(kind)+": owed of the next", l.owes(3, 1000), 3)
		if _, admitted := l.asks(1); admitted {
			t.Errorf("%s: a request is admitted although some is owed", kind)
		}
		equal(t, string(kind)+": used", l.state().Used, 123)
		equal(t, string(kind)+": free", l.state().Free, 0)
		for i, want := range free {
			at(quantity.Cell(1000 + 500*i))
			equal(t, string(kind)+": free later", l.state().Free, want)
		}
	}
}

// TestOthersDenyAndItIsChargedAllTheSame: a limit of 10 denies a request of 20. Nothing of it is
// charged to a limit that would have room, and all of it to one that is charged always. That one denies
// nobody: with 100 the same request is charged to all.
func TestOthersDenyAndItIsChargedAllTheSame(t *testing.T) {
	for limit, others := range map[quantity.Units]quantity.Units{10: 0, 100: 20} {
		l, _, _ := parties(t, fixed(limit), fixed(0))
		always := LimitTarget{Target: Target{Key: "always", Terms: fixed(15)}, Always: true}
		other := LimitTarget{Target: Target{Key: "other", Terms: fixed(100)}}
		d := l.Decide(*l.now, Decide{Fence: l.guard(), Commit: true, Costs: []quantity.Units{20},
			Buckets: []LimitTarget{l.bucket(), always, other}})
		equal(t, "admitted", d.Answers[0].Admitted, others > 0)
		equal(t, "used of the limit", d.Buckets[0].Used, others)
		equal(t, "used of the one charged always", d.Buckets[1].Used, 20)
		equal(t, "owed", d.Answers[0].Verdicts[1].Owed, 5)
		equal(t, "used of the other", d.Buckets[2].Used, others)
	}
}

// TestAChargeIsRememberedWhateverTheAnswer: sent again, it is not charged again.
func TestAChargeIsRememberedWhateverTheAnswer(t *testing.T) {
	l, _, _ := parties(t, fixed(10), fixed(0))
	always := LimitTarget{Target: Target{Key: "always", Terms: fixed(15)}, Always: true}
	for i := range 3 {
		d := l.Decide(*l.now, Decide{Fence: l.guard(), Commit: true, Once: "once", Costs: []quantity.Units{20},
			Buckets: []LimitTarget{l.bucket(), always}})
		equal(t, "repeated", d.Repeated, i > 0)
		equal(t, "used", d.Buckets[1].Used, 20)
	}
}

// TestABucketThatOwesLendsNothing: 90 below zero, it needs what is refilled: nothing of this cell or
// the next is lent.
func TestABucketThatOwesLendsNothing(t *testing.T) {
	l, b, at := parties(t, tokened(10, 10), tokened(10, 10))
	equal(t, "owed", l.owes(100, 1000), 90)
	equal(t, "lent", l.lends(b, 0, 9), 0)
	equal(t, "lent of the next cell", l.lends(b, 1, 9), 0)
	at(9_000)
	equal(t, "lent when it owes no more", l.lends(b, 9, 9), 9)
}

// TestWhatABucketOwesIsNotForgotten: 10 in 1000, and 100 more than it holds are charged. It is full
// after 11,000, and is remembered until then, and everybody knows. Without that it would be full as
// soon as its key expires.
func TestWhatABucketOwesIsNotForgotten(t *testing.T) {
	l, _, at := parties(t, tokened(10, 10), tokened(10, 10))
	equal(t, "owed", l.owes(110, 1000), 100)
	equal(t, "full after", l.state().Reset, 11_000)
	equal(t, "known to exist until", l.state().ExistsUntil, scenarioStart+11_000)
	l.Expire(scenarioStart + 11_000 + KeySlack)
	at(10_500)
	equal(t, "free", l.state().Free, 5)
}

// TestMostOwed: what a bucket would owe beyond the most is forgiven.
func TestMostOwed(t *testing.T) {
	l, _, at := parties(t, tokened(10, 10), tokened(10, 10))
	equal(t, "owed", l.owes(1000, 20), 990)
	equal(t, "owed of the next", l.owes(5, 20), 5)
	at(2_500)
	equal(t, "free", l.state().Free, 5)
}

// TestALogThatOwesHasFewEntries: a thousand charges of 1 after a log of 10 is full make no more than 64
// entries. Each is as late as it was, or later.
func TestALogThatOwesHasFewEntries(t *testing.T) {
	terms := Terms{Kind: SlidingWindowLog, Window: 100_000, Cell: 100_000, Tick: 1, Entitlement: 10}
	l, _, at := parties(t, terms, terms)
	for i := range quantity.Cell(1000) {
		at(i)
		l.owes(1, 0)
	}
	equal(t, "used", l.state().Used, 1000)
	equal(t, "entries", len(l.Twin.bucket("k").entries), 64)
	at(100_000 + 62) // the first 63 have left the window
	equal(t, "used, some time later", l.state().Used, 937)
	at(100_000 + 900) // before the newest does
	equal(t, "used, some time later", l.state().Used, 937)
}
