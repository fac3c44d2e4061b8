package barrier

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// maxPieces is how many pieces are kept of a limit. If there are more, pieces that stop binding at
// nearly the same time are kept as one, until the later time.
const maxPieces = 4

// maxSets is how many sets of regions are kept.
const maxSets = 16

// Folded returns the agenda without the documents that bind no limit any more. If more than most
// are open then, the older half is folded, unless too much would have to be kept. A region that is
// unsure closes nothing: it would not take an older document that another region tells of.
func (v *View) Folded(most int) Agenda {
	if v.Unsure {
		return v.Agenda
	}
	a := v.Agenda.From(v.Settled())
	first := a.whole()
	if len(a.documents)-first <= most {
		return a
	}
	until := len(a.documents) - max(most/2, 1)
	of := &View{Agenda: a, Region: v.Region, Heard: v.Heard, Now: v.Now}
	kept := of.fold(first, until)
	switch {
	case len(kept.Limits) == 0: // those that stay say the same
		return newAgenda(a.documents[until:])
	case len(kept.Sets) > maxSets:
		return a
	}
	d, err := policy.NewKept(kept)
	if err != nil {
		return a
	}
	documents := []*policy.Document{d}
	for _, one := range a.documents[:until] {
		if slices.Contains(kept.Pinned, one.Epoch()) {
			documents = append(documents, one)
		}
	}
	return newAgenda(append(documents, a.documents[until:]...))
}

// whole returns the place of the first document that is neither kept, nor folded and pinned.
func (a Agenda) whole() (place int) {
	kept := a.Kept()
	if kept == nil {
		return 0
	}
	for place = 1; slices.Contains(kept.Pinned, a.documents[place].Epoch()); place++ {
	}
	return place
}

// fold returns what is to be kept of the documents before the place until. Those before the place
// first are folded already.
func (v *View) fold(first, until int) *policy.Kept {
	kept := &policy.Kept{Oldest: v.Agenda.oldest(), Limits: map[policy.BucketID][]policy.Piece{}}
	if before := v.Agenda.Kept(); before != nil {
		kept.Through, kept.Sets = before.Through, before.Sets
		kept.Names, kept.Before = before.Names, beforeOf(before.Before, v.Agenda.documents[0].Epoch())
	}
	for _, d := range v.Agenda.documents[first:until] {
		kept.Through = max(kept.Through, d.Version)
		kept.Names = namesOf(kept.Names, []policy.Epoch{d.Epoch()})
		kept.Sets = setsOf(kept.Sets, [][]string{d.RegionNames()})
	}
	for id, t := range v.Agenda.changed {
		if pieces := v.pieces(t, until); len(pieces) > 0 {
			kept.Limits[id] = pieces
		}
	}
	for _, r := range v.Agenda.removed {
		if pieces := v.pieces(r.terms, until); len(pieces) > 0 {
			kept.Limits[r.terms.id] = pieces
		}
		if e := v.Agenda.documents[r.of].Epoch(); r.charged && r.of < until && !slices.Contains(kept.Pinned, e) &&
			v.standing(r.terms).Binding != nil {
			kept.Pinned = append(kept.Pinned, e)
		}
	}
	slices.SortFunc(kept.Pinned, byAge)
	return kept
}

// pieces returns what is to be kept of a limit when the documents before a place are folded.
func (v *View) pieces(t terms, until int) (all []policy.Piece) {
	opens := make([]quantity.StoreTime, len(t.entries))
	s := v.stand(t, func(place int, at quantity.StoreTime) { opens[place] = at })
	for _, e := range s.Binding {
		place := slices.Index(v.Agenda.documents, e.Document)
		if place >= until || e.Limit != nil && v.lasts(t.entries, place, until) {
			continue
		}
		p := pieceOf(e)
		for _, at := range opens[place+1:] {
			p.Until = sooner(p.Until, at)
		}
		all = append(all, p)
	}
	return normal(all)
}

// lasts reports whether all documents from one place to another say the same of a limit. Then
// nothing is lost without the first of them.
func (v *View) lasts(entries []*policy.Limit, from, to int) bool {
	for i := from; i < to; i++ {
		if v.differ(entries, i, i+1) || entries[i] == nil ||
			!maps.Equal(v.Agenda.documents[i].Returned, v.Agenda.documents[i+1].Returned) {
			return false
		}
	}
	return true
}

// pieceOf returns an entry as a piece.
func pieceOf(e Entry) policy.Piece {
	if e.Piece != nil {
		return *e.Piece
	}
	terms, parts := e.Terms(), spreadOf(e.Document, e.Limit)
	p := policy.Piece{Regions: parts.regions, Most: parts.parts, Limit: terms.Limit, Largest: terms.Largest,
		Fill: fillOf(e.Limit), Home: terms.Home, Lending: policy.PPM(terms.Lending), Borrowing: policy.PPM(terms.Borrowing),
		Returned: e.Document.Returned}
	for rotation := range e.Document.Regions {
		p.Least = append(p.Least, partsOf(e.Limit, len(e.Document.Regions), uint64(rotation)))
	}
	if !terms.Home { // rotations differ by a unit
		p.Least = spread{p.Regions, p.Least}.whole(lowest).parts
		p.Most = parts.whole(highest).parts
	}
	return p
}

// normal returns pieces in the order of their times, with those of one time as one, at most
// maxPieces.
func normal(pieces []policy.Piece) (all []policy.Piece) {
	late := func(p policy.Piece) quantity.StoreTime { return cmp.Or(p.Until, 1<<62) }
	slices.SortStableFunc(pieces, func(a, b policy.Piece) int { return cmp.Compare(late(a), late(b)) })
	for _, p := range pieces {
		if n := len(all); n > 0 && all[n-1].Until == p.Until {
			all[n-1] = joined(all[n-1], p)
		} else {
			all = append(all, p)
		}
	}
	for len(all) > maxPieces {
		nearest := 0
		for i := range all[:len(all)-1] {
			if late(all[i+1])-late(all[i]) < late(all[nearest+1])-late(all[nearest]) {
				nearest = i
			}
		}
		all[nearest+1] = joined(all[nearest], all[nearest+1])
		all = slices.Delete(all, nearest, nearest+1)
	}
	return all
}

// joined joins two pieces into one, which binds as long as the second.
func joined(a, b policy.Piece) policy.Piece {
	terms := Entry{Piece: &a}.Terms().And(Entry{Piece: &b}.Terms())
	p := policy.Piece{Until: b.Until, Added: a.Added || b.Added, Limit: terms.Limit, Largest: terms.Largest, Fill: max(a.Fill, b.Fill), Home: terms.Home,
		Lending: policy.PPM(terms.Lending), Borrowing: policy.PPM(terms.Borrowing), Returned: map[string]int64{}}
	for region, life := range a.Returned {
		if life = min(life, b.Returned[region]); life > 0 {
			p.Returned[region] = life
		}
	}
	if len(p.Returned) == 0 {
		p.Returned = nil
	}
	p.Regions = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Regions, b.Regions))))
	p.Least = both(p.Regions, spread{a.Regions, a.Least}, spread{b.Regions, b.Least}, lowest)
	p.Most = both(p.Regions, spread{a.Regions, a.Most}, spread{b.Regions, b.Most}, highest)
	return p
}

// both joins the parts of regions in two spreads. A region that is not in one of them has nothing
// there.
func both(regions []string, a, b spread, of func(a, b policy.Part) policy.Part) (parts [][]policy.Part) {
	if !slices.Equal(a.regions, b.regions) {
		a, b = a.whole(of), b.whole(of)
	}
	for rotation := range max(len(a.parts), len(b.parts)) {
		var row []policy.Part
		for _, region := range regions {
			row = append(row, of(a.part(region, rotation), b.part(region, rotation)))
		}
		parts = append(parts, row)
	}
	return parts
}

// part returns a region's part for a rotation.
func (s spread) part(region string, rotation int) (p policy.Part) {
	if i := slices.Index(s.regions, region); i >= 0 {
		p = s.parts[rotation%len(s.parts)][i]
	}
	return p
}

// namesOf returns the newest of two lists of folded documents.
func namesOf(a, b []policy.Epoch) []policy.Epoch {
	all := slices.Concat(a, b)
	slices.SortFunc(all, byAge)
	all = slices.Compact(all)
	return all[max(len(all)-policy.MaxKeptNames, 0):]
}

// beforeOf returns the last of what was kept before.
func beforeOf(all []policy.Epoch, more ...policy.Epoch) []policy.Epoch {
	all = slices.DeleteFunc(slices.Clone(all), func(e policy.Epoch) bool { return slices.Contains(more, e) })
	all = append(all, more...)
	return all[max(len(all)-policy.MaxKeptBefore, 0):]
}

func setsOf(a, b [][]string) [][]string {
	all := slices.Concat(a, b)
	slices.SortFunc(all, slices.Compare)
	return slices.CompactFunc(all, slices.Equal)
}

// joinKept returns documents in order. It joins the first ones, which are what is kept, into one.
// It drops the documents that are folded in them and not pinned.
func joinKept(documents []*policy.Document) ([]*policy.Document, error) {
	n := slices.IndexFunc(documents, func(d *policy.Document) bool { return d.Kept == nil })
	if n <= 0 {
		return documents, nil
	}
	first := documents[0]
	for _, more := range documents[1:n] {
		var err error
		if first, err = joinedKept(first, more); err != nil {
			return nil, err
		}
	}
	kept := first.Kept
	rest := slices.DeleteFunc(slices.Clone(documents[n:]), func(d *policy.Document) bool {
		return slices.Contains(kept.Names, d.Epoch()) && !slices.Contains(kept.Pinned, d.Epoch()) &&
			d != documents[len(documents)-1]
	})
	return append([]*policy.Document{first}, rest...), nil
}

// joinedKept joins what two documents keep into one document. If one of them was folded into the
// other, that is the other.
func joinedKept(first, more *policy.Document) (*policy.Document, error) {
	a, b := first.Kept, more.Kept
	switch {
	case slices.Contains(a.Before, more.Epoch()):
		return first, nil
	case slices.Contains(b.Before, first.Epoch()):
		return more, nil
	}
	k := policy.Kept{Oldest: min(a.Oldest, b.Oldest), Through: max(a.Through, b.Through), Pinned: namesOf(a.Pinned, b.Pinned),
		Names:  namesOf(a.Names, b.Names),
		Before: beforeOf(beforeOf(a.Before, b.Before...), first.Epoch(), more.Epoch()),
		Sets:   setsOf(a.Sets, b.Sets), Limits: maps.Clone(a.Limits)}
	for id, pieces := range b.Limits {
		k.Limits[id] = normal(slices.Concat(k.Limits[id], pieces))
	}
	return policy.NewKept(&k)
}
