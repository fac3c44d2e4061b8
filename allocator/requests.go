package allocator

import (
	"math"
	"math/bits"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// Requests is what callers asked of a bucket in some time, in units. The zero value is nothing.
type Requests struct {
	Admitted, Denied quantity.Units
	// LargeAdmitted and LargeDenied are what of that came in large costs (IsLarge).
	LargeAdmitted, LargeDenied quantity.Units
	// Capped is what of Admitted came from classes that may use only a part of the rights, of a kind
	// whose cells stand apart. It ends with that part, so it is no rate: see Outlook.Capped.
	Capped quantity.Units
	// Squares is the sum of the squares of all costs, at most 2^64-1.
	Squares uint64
}

// Admit adds an admitted cost of a limit.
func (r *Requests) Admit(cost, limit quantity.Units) { r.Add(requestOf(cost, limit, true)) }

// Deny adds a denied cost of a limit.
func (r *Requests) Deny(cost, limit quantity.Units) { r.Add(requestOf(cost, limit, false)) }

func requestOf(cost, limit quantity.Units, admitted bool) (r Requests) {
	large := quantity.Units(0)
	if IsLarge(cost, limit) {
		large = cost
	}
	if r.Denied, r.LargeDenied = cost, large; admitted {
		r = Requests{Admitted: cost, LargeAdmitted: large}
	}
	hi, lo := bits.Mul64(uint64(max(cost, 0)), uint64(max(cost, 0)))
	if r.Squares = lo; hi > 0 {
		r.Squares = math.MaxUint64
	}
	return r
}

// Add adds what was asked in another time.
func (r *Requests) Add(o Requests) {
	sum := func(to *quantity.Units, more quantity.Units) { *to = min(*to+more, algorithms.MaxUnits) }
	sum(&r.Admitted, o.Admitted)
	sum(&r.Denied, o.Denied)
	sum(&r.LargeAdmitted, o.LargeAdmitted)
	sum(&r.LargeDenied, o.LargeDenied)
	sum(&r.Capped, o.Capped)
	r.Squares = saturated(r.Squares, o.Squares)
}

// Small returns what came in costs that are not large.
func (r Requests) Small() Requests {
	if r.LargeAdmitted+r.LargeDenied == 0 {
		return r
	}
	return Requests{Admitted: r.Admitted - r.LargeAdmitted, Denied: r.Denied - r.LargeDenied,
		Squares: uint64(r.Admitted - r.LargeAdmitted + r.Denied - r.LargeDenied)}
}

// counted returns how many of the denied units count as demand; before is how many did in the
// sample before. Large costs that are denied while nothing else is asked for are no rate: see
// LargeLasts.
func (r Requests) counted(before quantity.Units) quantity.Units {
	if before+r.rated() == 0 && r.Denied == r.LargeDenied {
		return 0
	}
	return CountedDenials(r.Denied, before, r.rated())
}

// rated returns the admitted units that are a rate.
func (r Requests) rated() quantity.Units { return r.Admitted - r.Capped }

func saturated(a, b uint64) uint64 {
	sum, over := bits.Add64(a, b, 0)
	if over > 0 {
		return math.MaxUint64
	}
	return sum
}

// sizes follows how large the costs are, over some ten seconds.
type sizes struct {
	units   quantity.Units
	squares uint64
}

// sizesKeep is the part of what was seen that each sample leaves: all but 1/sizesKeep.
const sizesKeep = 64

func (s *sizes) add(r Requests) {
	s.units += min(r.Admitted+r.Denied, algorithms.MaxUnits) - s.units/sizesKeep
	s.squares = saturated(s.squares-s.squares/sizesKeep, r.Squares)
}

// maxSpread bounds Spread, so that products with it stay in range.
const maxSpread = 1 << 32

// Spread returns the mean square of the costs asked for lately, divided by their mean: by so much
// the variance of the units that come in a time is larger than their mean. It is 1 if every cost is
// 1.
func (d *Demand) Spread() int64 {
	if d.sizes.units <= 0 {
		return 1
	}
	return int64(min(max(d.sizes.squares/uint64(d.sizes.units), 1), maxSpread))
}

// deviation returns one standard deviation of units that are expected, at most up to what bounds
// it, and at least what it is if every cost is 1.
func deviation(units quantity.Units, spread int64, bound quantity.Units) quantity.Units {
	if units <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(units), uint64(spread))
	if hi > 0 || lo > math.MaxInt64 {
		lo = math.MaxInt64
	}
	return max(root(units), min(root(quantity.Units(lo)), bound))
}
