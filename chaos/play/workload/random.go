package workload

import (
	"math/bits"
	"math/rand/v2"
)

// source returns one of the independent streams of random numbers of a seed.
func source(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15*(stream+1)))
}

// one is 1 in the fixed-point numbers of this file: 32 binary places.
const one = 1 << 32

// exponential draws from the exponential distribution of mean 1, as a fixed-point number. It uses
// von Neumann's method of 1951, which draws falling runs of uniform numbers and decides by the
// parity of their length. It needs no logarithm, whose last bit would differ between machines. Each
// failed run adds 1.
func exponential(random *rand.Rand) int64 {
	for whole := int64(0); ; whole++ {
		first := random.Uint32()
		last, odd := first, true
		for {
			next := random.Uint32()
			if next >= last {
				break
			}
			last, odd = next, !odd
		}
		if odd {
			return whole*one + int64(first)
		}
	}
}

// Costs says what requests cost. If Octaves is 0, they cost Unit. Otherwise they cost Unit * 2^k
// with probability 2^-(k+1) for each k below Octaves, and Unit * 2^Octaves with the remaining
// probability. So each octave of costs has the same number of units: a heavy tail (Pareto, exponent
// 1) cut off at the top.
type Costs struct {
	// Unit is the smallest cost, 1 to 2^30.
	Unit int64
	// Octaves is the number of doublings from Unit to the largest cost, 0 to 20.
	Octaves int
}

// doubleMean returns twice the mean cost, which is Unit * (Octaves + 2) / 2.
func (c Costs) doubleMean() int64 { return c.Unit * int64(c.Octaves+2) }

// draw draws one cost.
func (c Costs) draw(random *rand.Rand) int64 {
	if c.Octaves == 0 {
		return c.Unit
	}
	return c.Unit << min(bits.TrailingZeros64(random.Uint64()), c.Octaves)
}

// most returns the largest cost.
func (c Costs) most() int64 { return c.Unit << c.Octaves }
