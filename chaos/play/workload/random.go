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
// 1) cut off at the top. If Most is set, they cost 1 to Most instead: Pareto, exponent 1.2, cut off
// at the top, where what is above costs Most.
type Costs struct {
	// Unit is the smallest cost, 1 to 2^30.
	Unit int64
	// Octaves is the number of doublings from Unit to the largest cost, 0 to 20.
	Octaves int
	// Most is the largest cost of a Pareto distribution, 0 or 2 to 2^20.
	Most int64
}

// above holds for each k from 1 on the probability that a cost is 2^k or more: 2^-1.2k, in parts of
// 2^32.
var above = [...]uint32{1869493099, 813744135, 354202707, 154175683, 67108864, 29210829, 12714752, 5534417,
	2408995, 1048576, 456419, 198668, 86475, 37640, 16384, 7131, 3104, 1351, 588, 256}

// mean returns the mean cost in parts of 2^-20.
func (c Costs) mean() (sum int64) {
	if c.Most == 0 {
		return c.Unit * int64(c.Octaves+2) << 19
	}
	rest := int64(1) << 32 // the probability of costs from 2^k on
	for k := 0; int64(1)<<k <= c.Most; k++ {
		from, to, next := int64(1)<<k, int64(2)<<k-1, int64(above[k])
		if to >= c.Most {
			// Those above Most are drawn as Most.
			in := (c.Most - from) * (from + c.Most - 1) / 2
			return sum + ((rest-next)/from*(in+(to-c.Most+1)*c.Most))>>12 + (next*c.Most)>>12
		}
		sum += ((rest - next) * (from + to) / 2) >> 12
		rest = next
	}
	return sum
}

// draw draws one cost.
func (c Costs) draw(random *rand.Rand) int64 {
	switch {
	case c.Most > 0:
		first, k := random.Uint32(), 0
		for k < len(above) && first < above[k] {
			k++
		}
		return min(int64(1)<<k+random.Int64N(int64(1)<<k), c.Most)
	case c.Octaves == 0:
		return c.Unit
	}
	return c.Unit << min(bits.TrailingZeros64(random.Uint64()), c.Octaves)
}

// most returns the largest cost.
func (c Costs) most() int64 { return max(c.Unit<<c.Octaves, c.Most) }
