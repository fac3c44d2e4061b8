package barrier

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// lack notes what documents count as that do not have the limit and are followed by one that has it.
// Those before a place are folded.
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

// lacks returns what the document at a place counts as if it does not have the limit; nil: it has
// it, or none that is newer has.
func (t *terms) lacks(place int) *policy.Piece {
	if t.lacking == nil {
		return nil
	}
	return t.lacking[place]
}

// evenly returns what a document without a limit counts as beside the next that has it: each of its
// regions has an even part. n regions that have an even part each, be it of different limits, have no
// more together than the largest of these. That is so in home mode, too, if no region has it all.
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

// behindAdded adds that a document does not have the limit which the one at place j has: another one
// that is not known may add it, too, in every region that has not acknowledged the newer one. What a
// region used before that counts only if it had taken such a document.
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

// tookLater reports whether a region that acknowledged the document at place j may have worked before
// by a later one, which gives other parts.
func (v *View) tookLater(region string, entries []*policy.Limit, j int) bool {
	at, known := v.acknowledged(region, v.Agenda.documents[j])
	for k := j + 1; known && k < len(entries); k++ {
		if before, has := v.acknowledged(region, v.Agenda.documents[k]); has && before <= at && entries[k] != nil && v.differ(entries, j, k) {
			return true
		}
	}
	return false
}
