//go:build !race

package algorithms

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestPortionIsExact compares Portion with arithmetic that knows no bound.
func TestPortionIsExact(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		units, part := rapid.Int64Range(0, MaxUnits).Draw(t, "units"), rapid.Int64Range(1, int64(Whole)).Draw(t, "part")
		want := new(big.Int).Mul(big.NewInt(units), big.NewInt(part))
		want.Div(want, big.NewInt(int64(Whole)))
		if got := Portion(quantity.Units(units), quantity.PPM(part)); int64(got) != want.Int64() {
			t.Fatalf("%d of a million of %d is %d, want %v", part, units, got, want)
		}
	})
	if got := Portion(-5, 600_000); got != -5 {
		t.Errorf("a part of -5 is %d: a region without rights has none for any part", got)
	}
}

const batch, interactive quantity.PPM = 600_000, Whole

// ask decides requests of one unit, each of a part.
func (p *party) ask(parts ...quantity.PPM) Decided {
	p.Helper()
	costs := make([]quantity.Units, len(parts))
	for i := range costs {
		costs[i] = 1
	}
	return p.Decide(*p.now, Decide{Fence: p.guard(), Commit: true, Costs: costs, Parts: parts,
		Buckets: []LimitTarget{p.bucket()}})
}

// TestAPartLeavesTheRest: of ten units, requests of a part of 0.6 use six. The other four are for
// the others, who use all ten, and what these use counts for both. They are decided in order, in
// one call.
func TestAPartLeavesTheRest(t *testing.T) {
	for _, kind := range Kinds {
		if kind == LeakyBucket {
			continue
		}
		terms := Terms{Kind: kind, Window: 1000, Cell: 1000, Tick: 1, Entitlement: 10}
		if kind.Bucket() {
			terms.Burst = 10
		}
		t.Run(string(kind), func(t *testing.T) {
			l, _, _ := parties(t, terms, terms)
			d := l.ask(batch, batch, batch, interactive, batch, batch, batch, batch, interactive, interactive, batch,
				interactive, interactive, interactive, batch)
			var admitted string
			for _, a := range d.Answers {
				if a.Admitted {
					admitted += "y"
				} else {
					admitted += "n"
				}
			}
			equal(t, "admitted", admitted, "yyyyyynnyynyynn")
			equal(t, "what was left at the first denial of batch", d.Answers[6].Verdicts[0].Remaining, 4)
			equal(t, "withheld from batch", d.Buckets[0].Withheld(kind, batch), 4)
			equal(t, "withheld from interactive", d.Buckets[0].Withheld(kind, interactive), 0)
		})
	}
}

// TestAPartOfWhatIsHeldNow: after a region lent eight of ten units, a part of 0.6 is one unit.
func TestAPartOfWhatIsHeldNow(t *testing.T) {
	for _, kind := range []Kind{FixedWindow, SlidingWindowCounter, SlidingWindowLog} {
		terms := Terms{Kind: kind, Window: 1000, Cell: 1000, Tick: 1, Entitlement: 10}
		l, _, _ := parties(t, terms, terms)
		g := l.Lend(*l.now, Lend{Fence: l.guard(), Target: l.bucket().Target,
			Debit: Debit{Peer: "p", Cell: terms.CellAt(*l.now), Lent: 8, Cap: 10}})
		equal(t, "lent", g.Row.Lent, 8)
		d := l.ask(batch, batch, interactive, interactive)
		for i, want := range []bool{true, false, true, false} {
			equal(t, string(kind), d.Answers[i].Admitted, want)
		}
	}
}

// TestAChargeHeedsNoPart: what is known only afterwards is charged whole, and a question of a part
// fits as one unit does.
func TestAChargeHeedsNoPart(t *testing.T) {
	terms := Terms{Kind: FixedWindow, Window: 1000, Cell: 1000, Tick: 1, Entitlement: 10}
	l, _, _ := parties(t, terms, terms)
	l.ask(batch, batch, batch, batch, batch, batch)
	question := Decide{Fence: l.guard(), Commit: true, PerBucket: true, Costs: []quantity.Units{0},
		Buckets: []LimitTarget{l.bucket()}, Parts: []quantity.PPM{batch}}
	equal(t, "a question of batch", l.Decide(*l.now, question).Answers[0].Admitted, false)
	question.Parts = []quantity.PPM{interactive}
	equal(t, "a question of interactive", l.Decide(*l.now, question).Answers[0].Admitted, true)
	charge := Decide{Fence: l.guard(), Commit: true, Costs: []quantity.Units{3},
		Buckets: []LimitTarget{l.bucket()}, Parts: []quantity.PPM{batch}}
	charge.Buckets[0].Always = true
	d := l.Decide(*l.now, charge)
	equal(t, "owed", d.Answers[0].Verdicts[0].Owed, 0)
	equal(t, "used", d.Buckets[0].Used, 9)
}
