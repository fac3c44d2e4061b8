//go:build !race

package allocator

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
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

// TestAScratchDividesAsAnew: divisions of any sizes, done one after another on one Scratch, give
// the same results as each on a new one.
func TestAScratchDividesAsAnew(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		scratch := &Scratch{}
		for range rapid.IntRange(1, 6).Draw(t, "divisions") {
			amount := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, 1<<40))
			demanders := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Demander {
				return Demander{Entitlement: quantity.Units(amount.Draw(t, "f")),
					Demand: quantity.Units(amount.Draw(t, "d")),
					Borrow: quantity.Units(amount.Draw(t, "b")),
					Lend:   quantity.Units(amount.Draw(t, "l"))}
			}), 1, 12).Draw(t, "demanders")
			if got, want := slices.Clone(scratch.WaterFill(demanders)),
				waterFill(demanders); !slices.Equal(got, want) {
				t.Fatalf("water-fill %v, anew %v", got, want)
			}
			offers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Offer {
				return Offer{Peer: rapid.IntRange(0, 11).Draw(t, "peer"),
					Back:  quantity.Units(amount.Draw(t, "back")),
					Spare: quantity.Units(amount.Draw(t, "spare")),
					Some:  rapid.Bool().Draw(t, "some")}
			}), 0, 12).Draw(t, "offers")
			units, tail, jitter, need := quantity.Units(amount.Draw(t, "units")),
				quantity.Units(amount.Draw(t, "tail")), quantity.PPM(amount.Draw(t, "jitter")),
				rapid.Bool().Draw(t, "need")
			got, want := scratch.Divide(units, tail, offers, jitter, need), divide(units, tail,
				offers, jitter, need)
			if !slices.Equal(got, want) {
				t.Fatalf("divided into %v, anew into %v", got, want)
			}
		}
	})
}

// waterFill is that of Scratch on fresh memory, and divide likewise.
func waterFill(demanders []Demander) []quantity.Units { return new(Scratch).WaterFill(demanders) }

func divide(units, tail quantity.Units, offers []Offer, jitter quantity.PPM,
	inNeed bool) []Portion {
	return new(Scratch).Divide(units, tail, offers, jitter, inNeed)
}
