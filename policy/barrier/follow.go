package barrier

import (
	"fmt"
	"slices"

	"github.com/quotad/quotad/policy"
)

// Follows returns why the newest document cannot follow the others; nil: it can. It must know each
// region of theirs, so that no region goes by a slip (ErrLeftOut). It must fence each region that
// they fence, or say that the region has returned since (ErrUnfenced): otherwise a region that
// missed the fence would look like one that was never fenced.
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

// whose returns the region whose acknowledgement of a newer document counts for a region of an
// older one. That is this region itself if the other was fenced meanwhile, or has returned since:
// then the other works under no earlier document.
func (v *View) whose(region string, older, newer *policy.Document) string {
	return v.whoseOf(region, older.Life(region), newer)
}

func (v *View) whoseOf(region string, life int64, newer *policy.Document) string {
	if newer.Fences(region) || life < newer.Life(region) {
		return v.Region
	}
	return region
}

// unknown reports whether the agenda may lack a document that was in force between the one at place
// base and the one at place j. It may if a region was fenced meanwhile and has returned, and that
// region is this one, or no document here tells of the fence. Nobody waited for a fenced region, so
// the others may have had more than the documents here give them.
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

// unknownSince is unknown for folded documents. Nobody knows any more which regions they fenced.
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
