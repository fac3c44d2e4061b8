package barrier

import (
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// Leftover is a limit that the newest document removed or replaced. Regions may still use what
// older documents gave them of it. Its terms stay known: if a document has it again, that is a
// change of these terms.
type Leftover struct {
	Limit *policy.Limit
	// Document is the newest that has the limit. Its conditions say which requests the limit
	// concerns. If it is what is kept of folded documents, the limit is not charged.
	Document *policy.Document
	Standing Standing
	// Charged says that requests still charge it, because its replacement starts at zero.
	Charged bool
}

// Leftovers returns the limits of older documents that are not over.
func (v *View) Leftovers() (all []Leftover) {
	for _, r := range v.Agenda.removed {
		if s := v.standing(r.terms); s.Binding != nil {
			if at, known := v.Heard[v.Region][v.Agenda.documents[r.of+1].Epoch()]; known {
				s.LendsBefore = over(r.terms.limit, at)
			}
			all = append(all, Leftover{r.terms.limit, v.Agenda.documents[r.of], s, r.charged})
		}
	}
	return all
}

// Settled returns the place of the oldest document that still binds some limit. Older ones can be
// forgotten.
func (v *View) Settled() int {
	oldest := len(v.Agenda.documents) - 1
	for _, t := range v.Agenda.changed {
		oldest = min(oldest, v.standing(t).From)
	}
	for _, l := range v.Leftovers() {
		oldest = min(oldest, l.Standing.From)
	}
	return oldest
}

// Waiting returns the regions that some limits wait for to acknowledge the newest document, with
// the number of these limits.
func (v *View) Waiting() map[string]int {
	all := map[string]int{}
	count := func(s Standing) {
		for _, region := range s.Waiting {
			all[region]++
		}
	}
	for _, t := range v.Agenda.changed {
		count(v.standing(t))
	}
	for _, l := range v.Leftovers() {
		count(l.Standing)
	}
	return all
}

// Next returns the earliest store time at which fewer documents will bind some limit, as far as
// acknowledgements are known; 0: none.
func (v *View) Next() (at quantity.StoreTime) {
	for _, t := range v.Agenda.changed {
		at = sooner(at, v.standing(t).Opens)
	}
	for _, l := range v.Leftovers() {
		at = sooner(at, l.Standing.Opens)
	}
	if v.After > 0 {
		for i := range v.Agenda.Newest().Limits {
			at = sooner(at, v.Standing(&v.Agenda.Newest().Limits[i]).Opens)
		}
	}
	return at
}
