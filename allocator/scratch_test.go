//go:build !race

package allocator

import (
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"pgregory.net/rapid"
)

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
