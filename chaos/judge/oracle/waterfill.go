package oracle

import "math/bits"

// WaterFill returns what each region should hold of the limit, as seen from outside. Every region
// first gets min(entitlement, demand). The rest goes to the regions that want more, so that their
// shares rise together in proportion to their entitlements (weighted max-min). Regions without an
// entitlement get, in equal parts, what the others leave. No share exceeds its demand.
//
// It is deliberately simple and shares no code with the allocator, whose plan it is compared with.
// The two may differ by rounding, by less than a unit per region and round of filling. Both slices
// have one number per region, none of them negative, and the entitlements add up to at most the
// limit.
func WaterFill(limit int64, demand, entitlement []int64) []int64 {
	share := make([]int64, len(demand))
	left := limit
	for i := range share {
		share[i] = min(entitlement[i], demand[i])
		left -= share[i]
	}
	left = fill(share, left, demand, entitlement)
	equal := make([]int64, len(demand))
	for i := range equal {
		equal[i] = 1
	}
	fill(share, left, demand, equal)
	return share
}

// fill distributes left among the regions with a weight and unmet demand, in rounds: each takes its
// part of what is left, and those whose demand is met drop out. When a round cannot split the rest
// any more, fillByOne distributes it. fill returns what nobody wants.
func fill(share []int64, left int64, demand, weight []int64) int64 {
	for left > 0 {
		var weights int64
		for i, w := range weight {
			if share[i] < demand[i] {
				weights += w
			}
		}
		if weights == 0 {
			return left
		}
		given := int64(0)
		for i, w := range weight {
			part := min(mulDiv(left, w, weights), demand[i]-share[i])
			share[i] += part
			given += part
		}
		if given == 0 {
			return fillByOne(share, left, demand, weight)
		}
		left -= given
	}
	return left
}

// fillByOne gives each unit to the region whose share is smallest for its weight. It returns what
// nobody wants.
func fillByOne(share []int64, left int64, demand, weight []int64) int64 {
	for ; left > 0; left-- {
		poorest := -1
		for i, w := range weight {
			if w == 0 || share[i] >= demand[i] {
				continue
			}
			if poorest < 0 || lessFor(share[i], w, share[poorest], weight[poorest]) {
				poorest = i
			}
		}
		if poorest < 0 {
			return left
		}
		share[poorest]++
	}
	return 0
}

// mulDiv returns a * b / c rounded down, for b <= c, without overflow.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}

// lessFor reports whether s1/w1 < s2/w2.
func lessFor(s1, w1, s2, w2 int64) bool {
	hi1, lo1 := bits.Mul64(uint64(s1), uint64(w2))
	hi2, lo2 := bits.Mul64(uint64(s2), uint64(w1))
	return hi1 < hi2 || hi1 == hi2 && lo1 < lo2
}
