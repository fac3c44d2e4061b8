package sim

import (
	"math/bits"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// flows is what a region did with a bucket: what it admitted, and which rights it moved. A mishap
// that has the region forget something can admit no more in excess than that.
type flows struct {
	admitted map[int64]quantity.Units // by window of the decision's store time
	rows     map[movedRow]algorithms.Row
	promised map[movedRow]algorithms.Row // what was lent of a cell before it opened
}

type movedRow struct {
	peer string
	cell quantity.Cell
}

// measured reports whether all that was moved is known. Under the Lua ledgers are inspected rarely, so
// that rows of a node that dies at once may be missed. Chunks and what Envoys are assigned are
// charged without being admitted.
func (b *bucket) measured() bool {
	return !b.limit.w.plan.Lua && b.limit.policy.Assign == nil &&
		b.limit.policy.Consistency != policy.Prefetch
}

// admits records units that a region admitted at a store time.
func (f *flows) admits(window int64, units quantity.Units) {
	if f.admitted == nil {
		f.admitted = map[int64]quantity.Units{}
	}
	f.admitted[window] += units
}

// moves records a row of a region with a peer, which its store holds in a cell. Of each value the
// highest counts.
func (f *flows) moves(peer string, of, in quantity.Cell, row algorithms.Row) {
	if f.rows == nil {
		f.rows = map[movedRow]algorithms.Row{}
		f.promised = map[movedRow]algorithms.Row{}
	}
	f.rows[movedRow{peer, of}] = larger(f.rows[movedRow{peer, of}], row)
	if of > in {
		f.promised[movedRow{peer, of}] = larger(f.promised[movedRow{peer, of}], row)
	}
}

// larger returns a row with the larger of each value.
func larger(a, b algorithms.Row) algorithms.Row {
	return algorithms.Row{Lent: max(a.Lent, b.Lent), Borrowed: max(a.Borrowed, b.Borrowed),
		BurstLent:     max(a.BurstLent, b.BurstLent),
		BurstBorrowed: max(a.BurstBorrowed, b.BurstBorrowed)}
}

// noteMoved records the rows that a debit has written.
func (n *node) noteMoved(e exchange.Lent) {
	for i, l := range n.lending[e.ID] {
		if b := n.w.bucket(l.Bucket.ID); b != nil && e.Given[i].Status == algorithms.StatusOK {
			b.flows[n.r.index].moves(l.Peer, l.Cell, e.Given[i].Cell, e.Given[i].Row)
		}
	}
}

// forgotten returns the most units that may be admitted in excess if a region forgets now what it
// admitted and moved of the bucket: all that still weighs, and what was moved of the next cell.
func (b *bucket) forgotten(r *region) quantity.Units {
	if !b.measured() {
		return algorithms.MaxUnits
	}
	f, sum := &b.flows[r.index], b.used(r)
	earliest := r.clock().Add(min(r.storeAhead, 0))
	if b.limit.kind().Bucket() {
		return sum + f.forgottenRates(b, b.cells().At(earliest)-1)
	}
	first := b.weighsFrom(earliest)
	for k, row := range f.rows {
		if b.windowAt(b.cells().Opens(k.cell)) >= first {
			sum += row.Lent + row.Borrowed
		}
	}
	return sum
}

// forgottenRates returns what forgotten rows from a cell on may admit of a bucket: the refill that
// the rates make in their cells, and the tokens that were lent.
func (f *flows) forgottenRates(b *bucket, from quantity.Cell) (sum quantity.Units) {
	var rates quantity.Units
	for k, row := range f.rows {
		if k.cell >= from {
			rates += row.Lent + row.Borrowed
		}
		sum += row.BurstLent
	}
	return sum + partUp(rates, b.cell(), b.limit.policy.Window.Microseconds())
}

// used returns what a region admitted of the bucket that still weighs: of a bucket that fills up
// all that it ever admitted.
func (b *bucket) used(r *region) (sum quantity.Units) {
	sum = b.underWay(r)
	first := b.weighsFrom(r.clock().Add(min(r.storeAhead, 0)))
	for window, units := range b.flows[r.index].admitted {
		if b.limit.kind().Bucket() || window >= first {
			sum += units
		}
	}
	return sum
}

// weighsFrom returns the first window of which something weighs at a store time.
func (b *bucket) weighsFrom(t quantity.StoreTime) int64 {
	window := b.windowAt(t)
	if b.limit.kind().Sliding() {
		window--
	}
	return window
}

// promised returns what all regions may have promised each other at any one time of a cell that had
// not opened, in units and in burst: of each pair of them the most of a cell.
func (b *bucket) promised() (units, burst quantity.Units) {
	if !b.measured() {
		return algorithms.MaxUnits, algorithms.MaxUnits
	}
	for i := range b.flows {
		most := map[string]algorithms.Row{}
		for k, row := range b.flows[i].promised {
			most[k.peer] = larger(most[k.peer], row)
		}
		for _, m := range most {
			units, burst = units+m.Lent, burst+m.BurstLent
		}
	}
	return units, burst
}

// partUp returns units * part / whole, rounded up.
func partUp(units quantity.Units, part, whole int64) quantity.Units {
	hi, lo := bits.Mul64(uint64(units), uint64(part))
	if hi >= uint64(whole) {
		return algorithms.MaxUnits
	}
	q, rest := bits.Div64(hi, lo, uint64(whole))
	if rest > 0 {
		q++
	}
	return quantity.Units(min(q, algorithms.MaxUnits))
}
