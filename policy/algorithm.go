package policy

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// Algorithm says how units are counted over time. It is spelled as in the document.
type Algorithm = algorithms.Kind

// The algorithms, under the names that a document uses. Package algorithms says what each does.
const (
	FixedWindow          = algorithms.FixedWindow
	SlidingWindowCounter = algorithms.SlidingWindowCounter
	SlidingWindowLog     = algorithms.SlidingWindowLog
	TokenBucket          = algorithms.TokenBucket
	LeakyBucket          = algorithms.LeakyBucket
)

// Cell returns the length of a cell: the slice of time for which rights are held
// and lent. It is at most the window for all but the buckets, whose cells are a
// second at least.
func (l *Limit) Cell() time.Duration {
	if l.Assign != nil && l.Algorithm == TokenBucket {
		return AssignCell
	}
	return time.Duration(algorithms.CellLength(l.Algorithm, l.Window.Microseconds())) *
		time.Microsecond
}

// Home reports whether the limit is in home mode. That is so if several regions have a weight above
// 0, and the limit, or the burst of a bucket, has fewer than two units for each of them. Each key
// then has a home region, which alone is entitled; the others borrow one unit at a time, and on a
// partition only the home region serves the key. The document alone decides it.
func (l *Limit) Home() bool {
	least := l.leastSplit()
	limit, burst := l.Shared()
	return limit < least || l.Algorithm.Bucket() && burst < least
}

// Borrows reports whether a request waits for rights of other regions if its own has none left: if
// the limit says on_exhausted: borrow, and in home mode unless it says deny, because there all
// regions but one have nothing to begin with. (Not a leaky_bucket, whose queue is at home alone.)
// Documents that differ in such a deny alone have the same digest: it changes how long a caller
// waits, and no rights.
func (l *Limit) Borrows() bool {
	return l.OnExhausted == ExhaustedBorrow || !l.deniesAtOnce && l.Home() && l.Algorithm != LeakyBucket
}

// Reserve returns LocalReserve, or 0 in home mode: there the home region lends
// all it has, and could not keep anything out of its store.
func (l *Limit) Reserve() PPM {
	if l.LocalReserve == 0 || l.Home() {
		return 0
	}
	return l.LocalReserve
}

// Traded returns how much of its entitlement a region may lend of a cell, and how much borrow: in home
// mode all of it, and without a bound.
func (l *Limit) Traded() (lending, borrowing quantity.PPM) {
	if l.Home() {
		return quantity.PPM(PPMOne), quantity.PPM(Unlimited)
	}
	return quantity.PPM(l.LendingLimit), quantity.PPM(l.BorrowingLimit)
}

// leastSplit returns the least number of units that is split between regions. It is 0 for a single
// region, which has nobody to split with.
func (l *Limit) leastSplit() quantity.Units {
	if n := l.entitled(); n > 1 {
		return 2 * n
	}
	return 0
}

// entitled counts the regions with a weight above 0.
func (l *Limit) entitled() quantity.Units {
	n := quantity.Units(0)
	for _, w := range l.Weights {
		if w > 0 {
			n++
		}
	}
	return n
}
