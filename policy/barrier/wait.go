package barrier

import (
	"cmp"
	"slices"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// wait is what a newer document waits for before it counts alone for a limit.
type wait struct {
	view          *View
	by            *policy.Document
	newer         *policy.Limit // nil: the newer document does not have the limit
	least         spread        // of it
	differs       bool
	needs         []string // regions whose acknowledgement it needs
	knows         []string // others, whose time does not count
	weighs        *policy.Limit
	settles, fill int64 // µs in which what Envoys hold is over, and in which a bucket fills
}

// behind adds what an older document gives of the limit.
func (w *wait) behind(of *policy.Document, older *policy.Limit, most spread) {
	if w.newer != nil && sameTerms(of, older, w.by, w.newer) {
		return
	}
	w.add(older, fillOf(older), most, func(region string) string { return w.view.whose(region, of, w.by) })
}

// behindPiece adds what a piece of folded documents gives of the limit.
func (w *wait) behindPiece(p *policy.Piece, t terms, j int) {
	w.add(t.limit, p.Fill, spread{p.Regions, p.Most}, func(region string) string { return w.view.whoseOf(region, p.Returned[region], w.by) })
	if w.newer != nil && p.Added {
		w.behindAdded(p, t, j)
	}
	if w.view.unknownSince(p.Returned, w.by) {
		w.behindAny()
	}
}

func (w *wait) add(older *policy.Limit, fill int64, most spread, whose func(string) string) {
	w.differs, w.weighs, w.fill = true, cmp.Or(w.newer, older), max(w.fill, fill)
	shrink := most.regions
	if w.newer != nil {
		w.fill, shrink = max(w.fill, fillOf(w.newer)), most.losing(w.least, less)
		if w.newer.Assign != nil && most.losing(w.least, fewerTokens) != nil {
			w.settles = policy.AssignSettles.Microseconds()
		}
	}
	for _, region := range shrink {
		w.needs = append(w.needs, whose(region))
	}
}

// behindAny adds what an unknown document may give of the limit: any region may get less by the
// newer one.
func (w *wait) behindAny() {
	w.differs, w.needs = true, append(w.needs, w.by.RegionNames()...)
	if w.newer != nil {
		w.weighs, w.fill = w.newer, max(w.fill, fillOf(w.newer))
		if w.newer.Assign != nil {
			w.settles = policy.AssignSettles.Microseconds()
		}
	}
}

// complete returns from when on the document at place j counts without those from base on, or the
// regions that must still acknowledge it. A document without the limit counts alone once every
// region that had a part of it has acknowledged that it has none. With timed, pieces that bind
// until a known time count, too.
func (v *View) complete(t terms, base, j int, timed bool) (opens quantity.StoreTime, waiting []string) {
	d := v.Agenda.documents[j]
	w := wait{view: v, by: d, newer: t.entries[j], least: t.spreads[j]}
	for i := base; i < j; i++ {
		if t.entries[i] != nil {
			w.behind(v.Agenda.documents[i], t.entries[i], t.spreads[i])
		} else if p := t.lacks(i); p != nil && t.lacks(j) != p {
			w.behindAdded(p, t, j)
		}
	}
	if base == 0 {
		for i := range t.pieces {
			if p := &t.pieces[i]; v.binds(p) && (timed || p.Until == 0) {
				w.behindPiece(p, t, j)
			}
		}
	}
	if (w.differs || w.newer != nil) && v.unknown(base, j) {
		w.behindAny()
	}
	if !w.differs {
		return 0, nil
	}
	waiting = v.missing(w.knows, d)
	var latest quantity.StoreTime
	for _, region := range w.needs {
		at, known := v.acknowledged(region, d)
		if !known {
			waiting = append(waiting, region)
		}
		latest = max(latest, at)
	}
	if w.newer != nil {
		waiting = append(waiting, v.majority(base, d)...)
	}
	switch {
	case waiting != nil:
		slices.Sort(waiting)
		return 0, slices.Compact(waiting)
	case w.needs == nil:
		return 0, nil
	}
	return max(over(w.weighs, latest), latest.Add(w.settles)).Add(w.fill), nil
}

// acknowledged returns when a region acknowledged a document. If the document fences the region,
// the operator's word stands for it, as of when this region acknowledged.
func (v *View) acknowledged(region string, d *policy.Document) (quantity.StoreTime, bool) {
	if d.Fences(region) {
		region = v.Region
	}
	at, known := v.Heard[region][d.Epoch()]
	return at, known
}

// missing returns those of some regions that have not acknowledged a document.
func (v *View) missing(regions []string, d *policy.Document) (missing []string) {
	for _, region := range regions {
		if _, known := v.acknowledged(region, d); !known {
			missing = append(missing, region)
		}
	}
	return missing
}

// majority returns the regions that must still acknowledge a newer document so that it has a
// majority of the regions of the document at place base, and of its own; nil if it has both.
// Regions that it fences do not count. Otherwise two documents that fence one region each would
// both have a majority.
func (v *View) majority(base int, newer *policy.Document) (waiting []string) {
	sets := [][]string{v.Agenda.documents[base].RegionNames(), newer.RegionNames()}
	if kept := v.Agenda.documents[base].Kept; kept != nil {
		sets = append(slices.Clone(kept.Sets), newer.RegionNames())
	}
	for _, set := range sets {
		set = slices.DeleteFunc(slices.Clone(set), newer.Fences)
		missing := v.missing(set, newer)
		if len(missing) > 0 && 2*len(missing) >= len(set) {
			waiting = append(waiting, missing...)
		}
	}
	return waiting
}
