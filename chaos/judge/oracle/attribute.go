package oracle

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// attribute splits the false denials of one period, max(0, sum of nets), among its phases, and the
// part of each phase among its regions, each time in proportion to the positive nets. The parts add
// up to the false denials, and no part exceeds the net of its slot.
func attribute(nets map[slot]int64) map[slot]int64 {
	slots := slices.SortedFunc(maps.Keys(nets), func(a, b slot) int {
		return cmp.Or(cmp.Compare(a.phase, b.phase), strings.Compare(a.region, b.region))
	})
	var total int64
	var phases []int           // ascending
	byPhase := map[int]int64{} // net of each phase
	for _, s := range slots {
		if len(phases) == 0 || phases[len(phases)-1] != s.phase {
			phases = append(phases, s.phase)
		}
		byPhase[s.phase] += nets[s]
		total += nets[s]
	}
	weights := make([]int64, len(phases))
	for i, p := range phases {
		weights[i] = max(0, byPhase[p])
	}
	parts := map[slot]int64{}
	for i, part := range apportion(max(0, total), weights) {
		splitPhase(parts, part, phases[i], slots, nets)
	}
	return parts
}

// splitPhase splits part, the part of one phase, among its regions, and writes the result into
// parts.
func splitPhase(parts map[slot]int64, part int64, phase int, slots []slot, nets map[slot]int64) {
	var mine []slot
	var weights []int64
	for _, s := range slots {
		if s.phase == phase {
			mine = append(mine, s)
			weights = append(weights, max(0, nets[s]))
		}
	}
	for i, n := range apportion(part, weights) {
		if n > 0 {
			parts[mine[i]] = n
		}
	}
}

// apportion splits total in whole units in proportion to the weights, by largest remainder; of
// equal remainders the first wins. If total is at most the sum of the weights, no part exceeds its
// weight. Weights must not be negative. If all weights are 0, all parts are 0.
func apportion(total int64, weights []int64) []int64 {
	parts := make([]int64, len(weights))
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	if sum == 0 || total <= 0 {
		return parts
	}
	left := total
	rests := make([]uint64, len(weights))
	order := make([]int, len(weights))
	for i, w := range weights {
		hi, lo := bits.Mul64(uint64(total), uint64(w))
		q, rest := bits.Div64(hi, lo, sum) // hi < sum, because total*w/sum <= total
		parts[i], rests[i], order[i] = int64(q), rest, i
		left -= int64(q)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rests[b], rests[a]) })
	for _, i := range order[:left] {
		parts[i]++
	}
	return parts
}
