package barrier

import (
	"maps"
	"slices"

	"github.com/quotad/quotad/policy"
)

// removed is an entry of an older document that the newest one no longer has.
type removed struct {
	of      int // place of the newest document that has it
	limit   *policy.Limit
	entries []*policy.Limit // by place of the document; nil where that has none
	// charged says that the newest document has another entry in its domain that the document at
	// place of had not: perhaps the same limit under another window.
	charged bool
}

// newAgenda returns the agenda of documents in order, with what changes between them.
func newAgenda(documents []*policy.Document) Agenda {
	a := Agenda{documents: documents, changed: map[policy.BucketID][]*policy.Limit{}}
	if len(documents) == 1 {
		return a
	}
	entries := entriesOf(documents)
	last := len(documents) - 1
	for id, all := range entries {
		if all[last] != nil && changes(documents, all) {
			a.changed[id] = all
		}
	}
	for i, d := range documents[:last] {
		added := addedDomains(documents[last], entries, i)
		for n := range d.Limits {
			l := &d.Limits[n]
			all := entries[l.Bucket(nil)]
			if all[last] == nil && newestOf(all) == i {
				a.removed = append(a.removed, removed{i, l, all, added[l.Domain]})
			}
		}
	}
	return a
}

// entriesOf returns the entries of the documents by the ID of their buckets without the values of
// the key: for each document the entry, or nil.
func entriesOf(documents []*policy.Document) map[policy.BucketID][]*policy.Limit {
	entries := map[policy.BucketID][]*policy.Limit{}
	for i, d := range documents {
		for n := range d.Limits {
			l := &d.Limits[n]
			id := l.Bucket(nil)
			if entries[id] == nil {
				entries[id] = make([]*policy.Limit, len(documents))
			}
			entries[id][i] = l
		}
	}
	return entries
}

// newestOf returns the place of the last document that has an entry.
func newestOf(entries []*policy.Limit) int {
	for i := len(entries) - 1; i > 0; i-- {
		if entries[i] != nil {
			return i
		}
	}
	return 0
}

// addedDomains returns the domains in which a document has an entry that the one at place i has
// not.
func addedDomains(d *policy.Document, entries map[policy.BucketID][]*policy.Limit,
	i int) map[string]bool {
	added := map[string]bool{}
	for n := range d.Limits {
		l := &d.Limits[n]
		if entries[l.Bucket(nil)][i] == nil {
			added[l.Domain] = true
		}
	}
	return added
}

// changes says whether the terms of an entry differ between documents that have it. Where a region
// has returned that was fenced, they may, of any entry.
func changes(documents []*policy.Document, entries []*policy.Limit) bool {
	newest := documents[len(documents)-1]
	if slices.ContainsFunc(documents, func(d *policy.Document) bool { return !sameLives(d, newest) }) {
		return true
	}
	var first int
	for first = range entries {
		if entries[first] != nil {
			break
		}
	}
	for i := first + 1; i < len(entries); i++ {
		if entries[i] != nil && !sameTerms(documents[first], entries[first], documents[i],
			entries[i]) {
			return true
		}
	}
	return false
}

// sameTerms says whether two documents give every region the same of a limit, whatever the key.
func sameTerms(a *policy.Document, of *policy.Limit, b *policy.Document, other *policy.Limit) bool {
	limit, burst := of.Shared()
	otherLimit, otherBurst := other.Shared()
	return of.Limit == other.Limit && of.Burst == other.Burst && limit == otherLimit && burst == otherBurst &&
		of.Reserve() == other.Reserve() && of.LendingLimit == other.LendingLimit && slices.Equal(of.Weights, other.Weights) &&
		slices.EqualFunc(a.Regions, b.Regions,
			func(a, b policy.Region) bool { return a.Name == b.Name })
}

// sameLives says whether no region has returned between two documents.
func sameLives(a, b *policy.Document) bool { return maps.Equal(a.Returned, b.Returned) }
