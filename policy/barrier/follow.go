package barrier

import (
	"fmt"
	"slices"

	"github.com/quotad/quotad/policy"
)

// Follows returns why the newest document cannot follow the others. It must know each region of
// theirs, so that none goes by a slip (ErrLeftOut). And it must fence each region that they fence,
// or say that the region has returned since, so that nobody takes one that missed the fence for one
// that never was fenced (ErrUnfenced).
func (a Agenda) Follows() error {
	newest := a.Newest()
	for _, older := range a.documents {
		for _, region := range slices.Concat(older.RegionNames(), older.Removed) {
			if !newest.Knows(region) {
				return fmt.Errorf("%w: document %s has region %q, and document %s neither has it nor removes it: correct a misspelt name, or write removed: [%s] if the region goes for good",
					ErrLeftOut, older.Epoch(), region, newest.Epoch(), region)
			}
			if err := unfenced(older, newest, region); err != nil {
				return err
			}
		}
	}
	return nil
}

// unfenced returns ErrUnfenced if a newer document forgets that a region was fenced.
func unfenced(older, newest *policy.Document, region string) error {
	least := older.Life(region)
	if older.Fences(region) && !newest.Fences(region) {
		least++
	}
	if newest.Life(region) >= least {
		return nil
	}
	return fmt.Errorf("%w: document %s says that region %q was fenced, and document %s does not: write fenced: [%s] if it is stopped still, or returned: {%s: %d} if it has returned (quotad regions return %s)",
		ErrUnfenced, older.Epoch(), region, newest.Epoch(), region, region, least, region)
}

// whose returns the region whose acknowledgement of a newer document counts for that of a region
// which an older one has: this region's own, if the other was fenced meanwhile. A region that has
// returned since works by no document of before.
func (v *View) whose(region string, older, newer *policy.Document) string {
	return v.whoseOf(region, older.Life(region), newer)
}

func (v *View) whoseOf(region string, life int64, newer *policy.Document) string {
	if newer.Fences(region) || life < newer.Life(region) {
		return v.Region
	}
	return region
}

// unknown reports whether the agenda may lack a document that was in force between those from base on
// and the one at place j, because a region was fenced meanwhile and has returned. Nobody waited for
// that region, so the others may have had more than any document gives them that it knows. So may
// have they of which another region does not know the fence.
func (v *View) unknown(base, j int) bool {
	newer := v.Agenda.documents[j]
	if len(newer.Returned) == 0 {
		return false
	}
	for i, older := range v.Agenda.documents[base:j] {
		if older.Kept != nil { // its pieces tell
			continue
		}
		for region, life := range newer.Returned {
			if older.Life(region) < life && (region == v.Region || !v.fencedFrom(base+i, j, region, life-1)) {
				return true
			}
		}
	}
	return false
}

// unknownSince is unknown for folded documents, of which it is not known what they fenced.
func (v *View) unknownSince(returned map[string]int64, newer *policy.Document) bool {
	for region, life := range newer.Returned {
		if returned[region] < life {
			return true
		}
	}
	return false
}

// fencedFrom reports whether a document between two places ends a life of a region.
func (v *View) fencedFrom(i, j int, region string, life int64) bool {
	return slices.ContainsFunc(v.Agenda.documents[i:j],
		func(d *policy.Document) bool { return d.Fences(region) && d.Life(region) == life })
}
