//go:build !race

package allocator

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// What the nodes of a region work out, each for itself from the same demands, is a fair division:
// it adds up to no more than the target but for what rounding leaves each of them, nobody gets more
// than it wants, and who gets less than it wants gets as much as anybody.
func TestNodePart(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		target := quantity.Units(rapid.Int64Range(0, 5000).Draw(t, "target"))
		wants := rapid.SliceOfN(rapid.Int64Range(0, 3000), 1, 6).Draw(t, "wants")
		var k Scratch
		sum, most := quantity.Units(0), quantity.Units(0)
		parts := make([]quantity.Units, len(wants))
		for i, want := range wants {
			var others []quantity.MilliRate
			for j, other := range wants {
				if j != i {
					others = append(others, quantity.MilliRate(1000*other))
				}
			}
			parts[i] = k.NodePart(target, quantity.MilliRate(1000*want), others, Second)
			sum, most = sum+parts[i], max(most, parts[i])
			if parts[i] > quantity.Units(want) {
				t.Errorf("node %d wants %d and gets %d", i, want, parts[i])
			}
		}
		if n := quantity.Units(len(wants)); sum > target+n {
			t.Errorf("%d of %d: %v", sum, target, parts)
		}
		short := false
		for i, want := range wants {
			if parts[i] < quantity.Units(want) {
				if short = true; parts[i]+1 < most {
					t.Errorf("node %d wants %d and gets %d, another %d", i, want, parts[i], most)
				}
			}
		}
		if n := quantity.Units(len(wants)); short && sum+n < target {
			t.Errorf("a node gets less than it wants, and %d of %d are left", target-sum, target)
		}
	})
}
