//go:build !race

package algorithms

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

// A scenario is one counter-example with its numbers: a lender and a borrower, each with its own
// store, and one clock. Times are microseconds after the start. The start is the beginning of a
// cell for every cell length used, and cells are counted from it.
const scenarioStart = quantity.StoreTime(1_000_000_000)

// party is one region of a scenario, with one bucket.
type party struct {
	*testing.T
	Twin
	name  string
	terms Terms
	now   *quantity.StoreTime
}

// parties returns a lender and a borrower of one limit, with clocks at the start.
func parties(t *testing.T, lender, borrower Terms) (l, b *party, at func(quantity.Cell)) {
	now := scenarioStart
	l = &party{T: t, name: "lender", terms: lender, now: &now}
	b = &party{T: t, name: "borrower", terms: borrower, now: &now}
	for _, p := range []*party{l, b} {
		p.Open(now, Open{Generation: 1, Region: p.name, Epoch: "1-e"})
	}
	return l, b, func(after quantity.Cell) {
		now = quantity.StoreTime(int64(scenarioStart) + int64(after))
	}
}

func (p *party) guard() Fence { return Fence{Generation: 1, Epoch: "1-e", Clock: *p.now} }

// cell returns the number of a cell counted from the start.
func (p *party) cell(k quantity.Cell) quantity.Cell {
	return CellAt(scenarioStart, p.terms.Cell) + k
}

func (p *party) bucket() LimitTarget {
	return LimitTarget{Target: Target{Key: "k", Terms: p.terms}}
}

func (p *party) after() int64 { return (*p.now).Sub(scenarioStart) }

// asks decides one cost.
func (p *party) asks(cost quantity.Units) (Verdict, bool) {
	p.Helper()
	d := p.Decide(*p.now, Decide{Fence: p.guard(), Commit: true, Costs: []quantity.Units{cost},
		Buckets: []LimitTarget{p.bucket()}})
	if d.Status != StatusOK {
		p.Fatalf("%s, at %d: cost %d: %s", p.name, p.after(), cost, d.Status)
	}
	return d.Answers[0].Verdicts[0], d.Answers[0].Admitted
}

// admits checks that a cost is admitted, and returns after how many us its turn comes.
func (p *party) admits(cost quantity.Units) (delay int64) {
	p.Helper()
	v, ok := p.asks(cost)
	if !ok {
		p.Fatalf("%s, at %d: denied %d: %+v", p.name, p.after(), cost, v)
	}
	return v.Delay
}

// denies checks that a cost is denied, with the retry that is expected.
func (p *party) denies(cost quantity.Units, retry int64) {
	p.Helper()
	v, ok := p.asks(cost)
	if ok {
		p.Fatalf("%s, at %d: admitted %d", p.name, p.after(), cost)
	}
	if v.Retry != retry {
		p.Errorf("%s, at %d: retry of %d in %d, want %d", p.name, p.after(), cost, v.Retry, retry)
	}
}

// state is what the party's ledger shows.
func (p *party) state() State {
	p.Helper()
	g := p.Inspect(*p.now, Inspect{Fence: p.guard(), Target: Target{Key: "k", Terms: p.terms}})
	if g.Status != StatusOK {
		p.Fatalf("%s, at %d: inspect: %s", p.name, p.after(), g.Status)
	}
	return g.State
}

// has checks the rights held in the current cell, and how many of them are free.
func (p *party) has(share, free quantity.Units) {
	p.Helper()
	if s := p.state(); s.Share != share || s.Free != free {
		p.Errorf("%s, at %d: share %d with %d free, want %d with %d", p.name, p.after(), s.Share,
			s.Free, share, free)
	}
}

// gives is a lend call for the other party. A field left 0 asks for nothing; Cap left 0 is the
// entitlement.
func (p *party) gives(other *party, k quantity.Cell, c Lend) Given {
	p.Helper()
	c.Fence, c.Key, c.Terms, c.Peer, c.Cell = p.guard(), "k", p.terms, other.name, p.cell(k)
	if c.Cap == 0 {
		c.Cap = p.terms.Entitlement
	}
	return p.Lend(*p.now, c)
}

// lends makes R[p->other] of cell k reach a value, as far as possible, and returns its new value.
func (p *party) lends(other *party, k quantity.Cell, lent quantity.Units) quantity.Units {
	p.Helper()
	g := p.gives(other, k, Lend{Debit: Debit{Lent: lent}})
	if g.Status != StatusOK {
		p.Fatalf("%s, at %d: lend: %s", p.name, p.after(), g.Status)
	}
	return g.Row.Lent
}

// hears is a credit call with the other party's rows of cell k.
func (p *party) hears(other *party, k quantity.Cell, c Credit) Credited {
	p.Helper()
	c.Fence, c.Key, c.Terms, c.Peer, c.PeerGeneration, c.Cell = p.guard(), "k", p.terms, other.name,
		1, p.cell(k)
	c.Most, c.MostBurst = other.terms.Entitlement, other.terms.Burst
	return p.Credit(*p.now, c)
}

// borrows is a whole transfer: a debit in the lender's store, which must give exactly the units,
// and the credit.
func (p *party) borrows(lender *party, k quantity.Cell, units quantity.Units) {
	p.Helper()
	if lent := lender.lends(p, k, units); lent != units {
		p.Fatalf("%s, at %d: lent %d, want %d", lender.name, p.after(), lent, units)
	}
	if g := p.hears(lender, k, Credit{Announcement: Announcement{Lent: units}}); g.Status != StatusOK ||
		g.Row.Borrowed != units {
		p.Fatalf("%s, at %d: credited %d, %s; want %d", p.name, p.after(), g.Row.Borrowed, g.Status,
			units)
	}
}

// equal checks a number.
func equal[N comparable](t *testing.T, what string, got, want N) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
