//go:build !race

package algorithms

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

// TestEveryKindHasTraits: each kind is in the table once, in the order of Kinds, and no two kinds
// have the same traits.
func TestEveryKindHasTraits(t *testing.T) {
	if len(kinds) != len(Kinds) {
		t.Fatalf("%d rows for %d kinds", len(kinds), len(Kinds))
	}
	seen := map[Traits]Kind{}
	for i, k := range Kinds {
		if kinds[i].Kind != k || k.Traits() != &kinds[i].Traits {
			t.Errorf("row %d is of %s, not of %s", i, kinds[i].Kind, k)
		}
		if other, twice := seen[*k.Traits()]; twice {
			t.Errorf("%s and %s have the same traits", other, k)
		}
		seen[*k.Traits()] = k
	}
	if *Kind("none of these").Traits() != (Traits{}) {
		t.Error("an unknown kind has traits")
	}
}

// TestTraitsAgree: the traits of a kind agree with each other, and with the rest of the package.
func TestTraitsAgree(t *testing.T) {
	for _, k := range Kinds {
		x := k.Traits()
		if x.Sliding && x.Bucket || x.CellsApart && (x.Sliding || x.Bucket) {
			t.Errorf("%s: %+v", k, x)
		}
		if x.WholeEntries && !x.Sliding || (x.LendsBurst || x.PromisesAhead) && !x.Bucket {
			t.Errorf("%s: %+v", k, x)
		}
		const window = 100 * second
		terms := Terms{Kind: k, Window: window, Cell: CellLength(k, window), Tick: 1}
		if lasts := terms.Weighs(0) > quantity.StoreTime(terms.Cell); lasts != x.Sliding {
			t.Errorf("%s: rows weigh beyond their cell: %t", k, lasts)
		}
		if begins := terms.CountsSince(10 * window); x.CellsApart != (begins == 10*window) {
			t.Errorf("%s: use counts since %d at the beginning of a cell", k, begins)
		}
	}
}
