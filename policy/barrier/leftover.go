package barrier

import (
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// Leftover is an entry that the newest document no longer has, but which is charged all the same,
// because the limit that took its place does not know what was used of it.
type Leftover struct {
	Limit *policy.Limit
	// Document is the newest that has the entry. Its conditions say which requests it concerns.
	Document *policy.Document
	Standing Standing
}

// Leftovers returns the entries of older documents that are charged still.
func (v *View) Leftovers() (all []Leftover) {
	for _, l := range v.Agenda.leftover {
		until, waiting := v.charged(l)
		if waiting == nil && until <= v.Now {
			continue
		}
		s := Standing{Opens: until, Waiting: waiting, Binding: v.entries(l.entries, 0)}
		for s.From = 0; l.entries[s.From] == nil; s.From++ {
		}
		all = append(all, Leftover{l.limit, v.Agenda.documents[l.of], s})
	}
	return all
}

// charged returns until when an entry of an older document is charged, or who has not acknowledged
// the newest document: such a region does not charge what took the entry's place.
func (v *View) charged(l leftover) (until quantity.StoreTime, waiting []string) {
	newest := v.Agenda.Newest()
	var latest quantity.StoreTime
	for i := range v.Agenda.documents {
		if l.entries[i] == nil {
			continue
		}
		for _, r := range v.Agenda.documents[i].Regions {
			at, known := v.acknowledged(r.Name, newest)
			if !known {
				waiting = append(waiting, r.Name)
			}
			latest = max(latest, at)
		}
	}
	if waiting != nil {
		return 0, waiting
	}
	return over(l.limit, latest).Add(fillOf(l.limit)), nil
}

// Settled returns the place of the oldest document that still binds some limit. Older ones can be
// forgotten.
func (v *View) Settled() int {
	oldest := len(v.Agenda.documents) - 1
	for _, entries := range v.Agenda.changed {
		oldest = min(oldest, v.Standing(entries[len(entries)-1]).From)
	}
	for _, l := range v.Leftovers() {
		oldest = min(oldest, l.Standing.From)
	}
	return oldest
}

// Waiting returns the regions whose acknowledgement of the newest document some limit waits for,
// with the number of such limits.
func (v *View) Waiting() map[string]int {
	all := map[string]int{}
	count := func(s Standing) {
		for _, region := range s.Waiting {
			all[region]++
		}
	}
	for _, entries := range v.Agenda.changed {
		count(v.Standing(entries[len(entries)-1]))
	}
	for _, l := range v.Leftovers() {
		count(l.Standing)
	}
	return all
}

// Next returns the earliest store time at which fewer documents will bind some limit, as far as
// acknowledgements are known; 0: none.
func (v *View) Next() (at quantity.StoreTime) {
	sooner := func(opens quantity.StoreTime) {
		if opens > 0 && (at == 0 || opens < at) {
			at = opens
		}
	}
	for _, entries := range v.Agenda.changed {
		sooner(v.Standing(entries[len(entries)-1]).Opens)
	}
	for _, l := range v.Leftovers() {
		sooner(l.Standing.Opens)
	}
	return at
}
