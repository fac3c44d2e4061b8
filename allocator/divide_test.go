//go:build !race

package allocator

import (
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"pgregory.net/rapid"
)

// TestFewest: the largest offers come first, and offers that are not needed are left out. All are
// returned if together they are too small.
func TestFewest(t *testing.T) {
	offers := []Offer{{Peer: 0, Spare: 10}, {Peer: 1, Spare: 40}, {Peer: 2, Back: 5, Spare: 25}}
	for units, want := range map[quantity.Units][]int{1: {1}, 27: {1}, 28: {1, 2}, 47: {1, 2},
		48: {1, 2, 0}, 1000: {1, 2, 0}} {
		var got []int
		for _, o := range Fewest(slices.Clone(offers), units) {
			got = append(got, o.Peer)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d units: of %v, want %v", units, got, want)
		}
	}
}

// TestFewestIsTheShortestHead: of all prefixes of the offers, sorted with the largest first, Fewest
// returns the shortest that reaches 1.5 times the units. Offers of one size stay in their order.
func TestFewestIsTheShortestHead(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		var offers []Offer
		for i := range rapid.IntRange(0, 8).Draw(r, "peers") {
			offers = append(offers,
				Offer{Peer: i, Back: quantity.Units(rapid.Int64Range(0, 5).Draw(r, "back")),
					Spare: quantity.Units(rapid.Int64Range(0, 20).Draw(r, "spare"))})
		}
		units := quantity.Units(rapid.Int64Range(0, 60).Draw(r, "units"))
		left, want, sum := slices.Clone(offers), []Offer(nil), quantity.Units(0)
		for len(left) > 0 && (len(want) == 0 || sum < units+units/2) {
			best := 0
			for i, o := range left {
				if o.Back+o.Spare > left[best].Back+left[best].Spare {
					best = i
				}
			}
			want, sum = append(want, left[best]), sum+left[best].Back+left[best].Spare
			left = slices.Delete(left, best, best+1)
		}
		if got := Fewest(slices.Clone(offers), units); !slices.Equal(got, want) {
			r.Fatalf("%d units of %v: %v, want %v", units, offers, got, want)
		}
	})
}
