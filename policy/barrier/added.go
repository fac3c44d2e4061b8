package barrier

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// lack records what a document counts as that does not have the limit, if a newer document has it.
// The documents before the place whole are folded.
func (t *terms) lack(documents []*policy.Document, whole int) {
	var next *policy.Limit
	for i := len(documents) - 1; i >= whole; i-- {
		switch {
		case t.entries[i] != nil:
			next = t.entries[i]
		case next == nil:
		case t.lacking == nil:
			t.lacking = make([]*policy.Piece, len(documents))
			t.lacking[i] = evenly(documents[i], next)
		case t.lacking[i+1] != nil && sameRegions(documents[i], documents[i+1]) &&
			maps.Equal(documents[i].Returned, documents[i+1].Returned):
			t.lacking[i] = t.lacking[i+1]
		default:
			t.lacking[i] = evenly(documents[i], next)
		}
	}
}

// lacks returns what the document at a place counts as without the limit. It returns nil if the
// document has the limit, or if no newer one does.
func (t *terms) lacks(place int) *policy.Piece {
	if t.lacking == nil {
		return nil
	}
	return t.lacking[place]
}

// evenly returns what a document without a limit counts as beside the next one that has it: each of
// its regions has an even part. If n regions have an even part each, even of different limits, then
// together they have at most the largest of these limits. In home mode that is so only if no region
// has it all.
func evenly(d *policy.Document, l *policy.Limit) *policy.Piece {
	even, names := *l, d.RegionNames()
	even.Weights = slices.Repeat([]quantity.Units{1}, len(names))
	terms := Entry{Limit: l}.Terms()
	p := &policy.Piece{Regions: names, Limit: terms.Limit, Largest: terms.Largest, Fill: fillOf(l), Home: terms.Home,
		Lending: policy.PPM(terms.Lending), Borrowing: policy.PPM(terms.Borrowing), Returned: d.Returned, Added: true}
	for rotation := range names {
		p.Least = append(p.Least, splitParts(&even, uint64(rotation), false))
		p.Most = append(p.Most, compared(l, splitParts(&even, uint64(rotation), false)))
	}
	return p
}

// behindAdded adds what a document without the limit means for the one at place j that has it.
// Another, unknown document may add the limit, too, in every region that has not acknowledged the
// newer one. What a region used before it acknowledged that counts only if it had taken such a
// document.
func (w *wait) behindAdded(p *policy.Piece, t terms, j int) {
	w.differs, w.weighs, w.fill = true, cmp.Or(w.newer, w.weighs, t.limit), max(w.fill, p.Fill)
	if t.limit.Assign != nil {
		w.settles = policy.AssignSettles.Microseconds()
	}
	for _, region := range p.Regions {
		region = w.view.whoseOf(region, p.Returned[region], w.by)
		if w.view.tookLater(region, t.entries, j) {
			w.needs = append(w.needs, region)
		} else {
			w.knows = append(w.knows, region)
		}
	}
}

// tookLater reports whether a region may have worked under a later document with other parts before
// it acknowledged the one at place j.
func (v *View) tookLater(region string, entries []*policy.Limit, j int) bool {
	at, known := v.acknowledged(region, v.Agenda.documents[j])
	for k := j + 1; known && k < len(entries); k++ {
		if before, has := v.acknowledged(region, v.Agenda.documents[k]); has && before <= at && entries[k] != nil && v.differ(entries, j, k) {
			return true
		}
	}
	return false
}
