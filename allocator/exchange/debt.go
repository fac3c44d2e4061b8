package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// A bucket that is charged always (Bucket.Always) may owe: more counts than the region has rights.
// The region asks for as much, so that the others stop too. It does so only for a bucket that it was
// asked about before a use, in this cell or the one before (Observed.Asked). Else a flood of charges
// that nobody asked about, and that are answered as denied, would draw the units of all regions.
//
// A lender covers what is owed before its own expected use. What is owed is neither lent nor spare:
// the ledger sees to that.

// maxDebtPause is the longest time between two asks for the same debt, in microseconds.
const maxDebtPause = 60 * allocator.Second

// debtPause returns the time between two asks for the same debt, in microseconds: a hundredth of the
// window.
func (b *Bucket) debtPause() int64 { return min(b.Window/100, maxDebtPause) }

// owing is what is known of a bucket's debt.
type owing struct {
	until  quantity.Cell     // its debt is covered in cells before this one
	asked  quantity.Units    // the debt that was last asked for, or what was left of it since
	at     quantity.NodeTime // when it was last asked for; 0: not yet
	paused bool              // it is not to be asked for now
}

// debt returns how many units the bucket owes.
func (v *view) debt() quantity.Units {
	if !v.Always {
		return 0
	}
	has := v.state.Share
	if v.frame.Bucket {
		has = v.own.Burst
		for i := range v.dealings {
			row := &v.dealings[i].at(v.state.Cell).row
			has += row.BurstBorrowed - row.BurstLent
		}
	}
	return max(v.state.Used-max(has, 0), 0)
}

// covers returns how many units of a cell are to be asked for because they are owed.
func (v *view) covers(cell quantity.Cell) quantity.Units {
	if cell != v.state.Cell || cell >= v.owing.until || v.owing.paused {
		return 0
	}
	return v.debt()
}

// planned returns the state by which the plan goes: with what is owed if that is to be covered, else
// without.
func (v *view) planned() algorithms.State {
	s := v.state
	switch debt, covers := v.debt(), v.covers(s.Cell); {
	case v.frame.Bucket:
		s.Free -= covers
	case debt > covers:
		s.Used -= debt
		s.Fading = min(s.Fading, s.Used)
	}
	return s
}

// pauseDebt decides whether what is owed is to be asked for now: at once when it arises or grows, and
// while requests are denied; else again after a pause, if somebody may have something.
func (v *view) pauseDebt(now quantity.NodeTime) {
	o, debt := &v.owing, v.debt()
	o.paused = false
	switch {
	case debt == 0:
		o.at, o.asked = 0, 0
		return
	case o.at == 0 || debt > o.asked:
		return
	}
	o.asked = debt
	o.paused = v.wanted == 0 && !v.inNeed(now) && (now.Sub(o.at) < v.debtPause() || !v.anySpare(now))
}

// askedForDebt notes that what is owed has been asked for, if it was.
func (v *view) askedForDebt(now quantity.NodeTime) {
	cell := v.state.Cell
	if debt := v.covers(cell); debt > 0 && v.pending(cell) != (gain{}) {
		v.owing.asked, v.owing.at = debt, now
	}
}

// anySpare reports whether any peer may have something to lend.
func (v *view) anySpare(now quantity.NodeTime) bool {
	for i := range v.dealings {
		d := &v.dealings[i]
		if v.frame.Bucket && v.spareBurstOf(d, v.state.Cell, now) > 0 || !v.frame.Bucket && v.spareOf(d, v.state.Cell, now) > 0 {
			return true
		}
	}
	return false
}

// keptOwed returns how many units a lender keeps of those that it would, from a peer that owes some:
// none if the peer asks for nothing else, else so many that what it owes can be covered.
func keptOwed(kept, asked, owed, free quantity.Units) quantity.Units {
	switch {
	case owed <= 0:
		return kept
	case asked <= owed:
		return 0
	}
	return min(kept, max(free-owed, 0))
}
