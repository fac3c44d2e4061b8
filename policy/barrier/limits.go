package barrier

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quotad/quotad/policy"
)

// terms is all that is known of a limit in the documents of an agenda.
type terms struct {
	id      policy.BucketID // of its buckets, without the values of the key
	limit   *policy.Limit   // the newest entry, or as much of it as the ID of its buckets tells
	entries []*policy.Limit // by place of the document; nil where that has none
	spreads []spread        // of the entries
	pieces  []policy.Piece  // of folded documents
	lacking []*policy.Piece // by place: what a document without it counts as; see lack
}

// spread notes what the entries give. Documents that say the same share it.
func (t *terms) spread(documents []*policy.Document) {
	t.spreads = make([]spread, len(t.entries))
	for i, l := range t.entries {
		switch {
		case l == nil:
		case i > 0 && t.entries[i-1] != nil && sameTerms(documents[i-1], t.entries[i-1], documents[i], l):
			t.spreads[i] = t.spreads[i-1]
		default:
			t.spreads[i] = spreadOf(documents[i], l)
		}
	}
}

// removed is an entry of an older document that the newest one no longer has.
type removed struct {
	of    int // place of the newest document that has it; 0 if that is folded
	terms terms
	// charged says that the newest document has an entry in this domain that the document at place
	// of did not have: perhaps the same limit under another window.
	charged bool
}

// newAgenda returns the agenda of documents in order, with what changes between them.
func newAgenda(documents []*policy.Document) Agenda {
	a := Agenda{documents: documents, changed: map[policy.BucketID]terms{}}
	if len(documents) == 1 {
		return a
	}
	last := len(documents) - 1
	entries, moved := a.entries(), !sameLives(documents)
	for id, t := range entries {
		if t.entries[last] != nil && (moved || t.pieces != nil || t.lacking != nil || changes(documents, t.entries)) {
			t.spread(documents)
			a.changed[id] = t
		}
	}
	seen := map[policy.BucketID]bool{}
	for i := last; i >= 0; i-- {
		var added map[string]bool
		for n := range documents[i].Limits {
			l := &documents[i].Limits[n]
			id := l.Bucket(nil)
			if t, bound := entries[id]; bound && t.entries[last] == nil && !seen[id] {
				if added == nil {
					added = addedDomains(documents[last], documents[i])
				}
				t.limit = l
				t.spread(documents)
				a.removed = append(a.removed, removed{i, t, added[l.Domain]})
			}
			seen[id] = true
		}
	}
	slices.SortStableFunc(a.removed, func(a, b removed) int { return cmp.Compare(a.of, b.of) })
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		if t := entries[id]; t.entries[last] == nil && !seen[id] {
			t.spread(documents)
			a.removed = append(a.removed, removed{terms: t})
		}
	}
	return a
}

// entries returns what is known of each limit, by the ID of its buckets without the values of the
// key. Everything about a pinned document is in the pieces.
func (a Agenda) entries() map[policy.BucketID]terms {
	all := map[policy.BucketID]terms{}
	kept := a.Kept()
	if kept != nil {
		for id, pieces := range kept.Limits {
			l, _ := limitOf(id) // what is kept was checked
			for _, p := range pieces {
				l.Limit = max(l.Limit, p.Largest) // on which its tick depends
			}
			all[id] = terms{id: id, limit: l, entries: make([]*policy.Limit, len(a.documents)), pieces: pieces}
		}
	}
	for i, d := range a.documents {
		if kept != nil && slices.Contains(kept.Pinned, d.Epoch()) {
			continue
		}
		for n := range d.Limits {
			l := &d.Limits[n]
			t, known := all[l.Bucket(nil)]
			if !known {
				t.id, t.entries = l.Bucket(nil), make([]*policy.Limit, len(a.documents))
			}
			t.limit, t.entries[i] = l, l
			all[t.id] = t
		}
	}
	for id, t := range all {
		t.lack(a.documents, a.whole())
		all[id] = t
	}
	return all
}

// limitOf returns the limit of an ID without values.
func limitOf(id policy.BucketID) (*policy.Limit, error) {
	ref, err := policy.ParseBucketID(id)
	if err != nil {
		return nil, err
	}
	return ref.Limit()
}

// addedDomains returns the domains in which a document has an entry that an older one has not.
func addedDomains(d, older *policy.Document) map[string]bool {
	had := map[policy.BucketID]bool{}
	for n := range older.Limits {
		had[older.Limits[n].Bucket(nil)] = true
	}
	added := map[string]bool{}
	for n := range d.Limits {
		if l := &d.Limits[n]; !had[l.Bucket(nil)] {
			added[l.Domain] = true
		}
	}
	return added
}

// changes reports whether the terms of an entry differ between documents that have it.
func changes(documents []*policy.Document, entries []*policy.Limit) bool {
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

// sameTerms reports whether two documents give every region the same of a limit, whatever the key.
func sameTerms(a *policy.Document, of *policy.Limit, b *policy.Document, other *policy.Limit) bool {
	limit, burst := of.Shared()
	otherLimit, otherBurst := other.Shared()
	return of.Limit == other.Limit && of.Burst == other.Burst && limit == otherLimit && burst == otherBurst &&
		of.Reserve() == other.Reserve() && of.LendingLimit == other.LendingLimit && slices.Equal(of.Weights, other.Weights) &&
		sameRegions(a, b)
}

func sameRegions(a, b *policy.Document) bool {
	return slices.EqualFunc(a.Regions, b.Regions, func(a, b policy.Region) bool { return a.Name == b.Name })
}

// sameLives reports whether no region has returned between documents.
func sameLives(documents []*policy.Document) bool {
	newest := documents[len(documents)-1]
	return !slices.ContainsFunc(documents, func(d *policy.Document) bool {
		return d.Kept == nil && !maps.Equal(d.Returned, newest.Returned)
	})
}
