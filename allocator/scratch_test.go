package allocator

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAScratchDividesAsAnew: divisions of any sizes, done one after another on one Scratch, give
// the same results as each on a new one.
func TestAScratchDividesAsAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scratch := &Scratch{}
		for range rapid.IntRange(1, 6).Draw(t, "divisions") {
			amount := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, 1<<40))
			demanders := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Demander {
				return Demander{Entitlement: amount.Draw(t, "f"), Demand: amount.Draw(t, "d"), Borrow: amount.Draw(t, "b"), Lend: amount.Draw(t, "l")}
			}), 1, 12).Draw(t, "demanders")
			if got, want := slices.Clone(scratch.WaterFill(demanders)), waterFill(demanders); !slices.Equal(got, want) {
				t.Fatalf("water-fill %v, anew %v", got, want)
			}
			offers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Offer {
				return Offer{Peer: rapid.IntRange(0, 11).Draw(t, "peer"), Back: amount.Draw(t, "back"), Spare: amount.Draw(t, "spare"),
					Some: rapid.Bool().Draw(t, "some")}
			}), 0, 12).Draw(t, "offers")
			units, tail, jitter, need := amount.Draw(t, "units"), amount.Draw(t, "tail"), amount.Draw(t, "jitter"), rapid.Bool().Draw(t, "need")
			got, want := scratch.Divide(units, tail, offers, jitter, need), divide(units, tail, offers, jitter, need)
			if !slices.Equal(got, want) {
				t.Fatalf("divided into %v, anew into %v", got, want)
			}
		}
	})
}

// waterFill is that of Scratch on fresh memory, and divide likewise.
func waterFill(demanders []Demander) []int64 { return new(Scratch).WaterFill(demanders) }

func divide(units, tail int64, offers []Offer, jitter int64, inNeed bool) []Portion {
	return new(Scratch).Divide(units, tail, offers, jitter, inNeed)
}
