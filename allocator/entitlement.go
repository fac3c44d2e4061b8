package allocator

import (
	"cmp"
	"math/bits"
	"slices"
)

// Entitlements splits a limit over regions in proportion to their weights: rounded down, and the units left over
// one each to the largest remainders (Hamilton's method). Ties are broken by position, rotated by rotation (a hash
// of the key), so that over many keys no region is always the one to get nothing. The sum is the limit exactly.
// Weights are not negative and not all zero; a region of weight 0 gets nothing.
func Entitlements(limit int64, weights []int64, rotation uint64) []int64 {
	var total int64
	for _, w := range weights {
		total += w
	}
	n := len(weights)
	split := make([]int64, n)
	remainder := make([]int64, n)
	order := make([]int, 0, n)
	left := limit
	for i, w := range weights {
		split[i], remainder[i] = mulDiv(limit, w, total)
		left -= split[i]
		if w > 0 {
			order = append(order, i)
		}
	}
	first := int(rotation % uint64(n))
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(remainder[b], remainder[a]), cmp.Compare((a-first+n)%n, (b-first+n)%n))
	})
	for _, i := range order[:left] {
		split[i]++
	}
	return split
}

// PPM is a fraction in parts per million.
const PPM = 1_000_000

// Part returns the given parts per million of units, rounded down.
func Part(units, ppm int64) int64 {
	q, _ := mulDiv(units, ppm, PPM)
	return q
}

// mulDiv returns a*b/c and the remainder without overflow in between; a, b >= 0, c > 0. A quotient beyond an int64
// is cut to the largest.
func mulDiv(a, b, c int64) (quotient, remainder int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return maxInt64, 0
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	if q > maxInt64 {
		return maxInt64, 0
	}
	return int64(q), int64(r)
}

const maxInt64 = 1<<63 - 1
