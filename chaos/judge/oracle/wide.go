package oracle

import (
	"math"
	"math/bits"
)

// wide is a whole number from 0 to 2^128-1, because units times microseconds do not fit into 64
// bits. Sums that exceed the largest number stay at it, and differences below zero stay at zero.
type wide struct{ hi, lo uint64 }

// product returns a * b, for a, b >= 0.
func product(a, b int64) wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return wide{hi, lo}
}

func (w wide) plus(o wide) wide {
	lo, carry := bits.Add64(w.lo, o.lo, 0)
	hi, over := bits.Add64(w.hi, o.hi, carry)
	if over != 0 {
		return wide{math.MaxUint64, math.MaxUint64}
	}
	return wide{hi, lo}
}

func (w wide) minus(o wide) wide {
	lo, borrow := bits.Sub64(w.lo, o.lo, 0)
	hi, under := bits.Sub64(w.hi, o.hi, borrow)
	if under != 0 {
		return wide{}
	}
	return wide{hi, lo}
}

// over returns w / d rounded up, for d > 0, at most the largest int64.
func (w wide) over(d int64) int64 {
	w = w.plus(wide{lo: uint64(d - 1)})
	if w.hi >= uint64(d) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(w.hi, w.lo, uint64(d))
	return int64(min(q, math.MaxInt64))
}
