package barrier

import (
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// Heard holds the acknowledgements that a region knows of, its own among them: by region, and by
// document, the time of that region's store. An acknowledgement holds for ever.
type Heard map[string]map[policy.Epoch]quantity.StoreTime

// Add records an acknowledgement, and reports whether it is new. Of several times the earliest
// counts: from each of them on, the region did not decide without the document.
func (h Heard) Add(region string, e policy.Epoch, at quantity.StoreTime) bool {
	if h[region] == nil {
		h[region] = map[policy.Epoch]quantity.StoreTime{}
	}
	before, known := h[region][e]
	if known && before <= at {
		return false
	}
	h[region][e] = at
	return true
}

// By returns the store time by which all other regions with any acknowledgement had acknowledged a
// document of an agenda.
func (h Heard) By(self string, a Agenda) (latest quantity.StoreTime) {
	for region, all := range h {
		first := quantity.StoreTime(0)
		for e, at := range all {
			if a.Has(e) {
				first = sooner(first, at)
			}
		}
		if region != self {
			latest = max(latest, first)
		}
	}
	return latest
}

// View is what one region makes of its agenda at a time of its store. It changes only if Heard
// does.
type View struct {
	Agenda Agenda
	Region string // whose view it is
	Heard  Heard
	Now    quantity.StoreTime // a time that every shard of the region's store has shown
	// Unsure says that the region may have worked under newer documents than it remembers, because
	// it lost its store and a journal. It uses nothing until the other regions have told.
	Unsure bool
	// After is for a region that lost all it knew, and began with a newer document than others
	// worked under. By After all of these had acknowledged that document. The region uses a limit
	// once nothing weighs any more of what the others had before; 0: it may at once.
	After quantity.StoreTime
	// Fence is the word of another region that this one is fenced, unless an open document takes it
	// back; nil: there is none. A region with a Fence uses nothing.
	Fence *Fence
}

// Fence is what one region says about another: that it is fenced.
type Fence struct {
	From string // the region that says so
	Life int64  // that it ends: see [policy.Document.Life]
}

// Knows reports whether the newest document itself says what becomes of a region that another
// region calls fenced: it fences the region, too, or the region has returned since.
func (a Agenda) Knows(region string, f Fence) bool {
	return a.Newest().Fences(region) || a.Newest().Life(region) > f.Life
}

// Only returns the view of a region that knows one document.
func Only(d *policy.Document, region string) *View {
	return &View{Agenda: Of(d), Region: region}
}

// Standing says what is in force of one limit.
type Standing struct {
	// Binding holds the entries of all documents that bind, the oldest first. A region may use the
	// least of what they give it.
	Binding []Entry
	// From is the place in the agenda of the oldest document that binds.
	From int
	// Opens is the store time from which on fewer documents bind; 0: none is known.
	Opens quantity.StoreTime
	// Waiting holds the regions that must still acknowledge the newest document.
	Waiting []string
	// Returning says that the region has nothing: it was fenced and has returned by a document that
	// does not count alone yet, or it lost all it knew (see View.After).
	Returning bool
	// LendsBefore is for a limit that the newest document no longer has: nothing is lent of cells
	// that open then or later; 0: all cells may be lent. A document that puts the limit back waits
	// for what was lent before this region acknowledged its removal.
	LendsBefore quantity.StoreTime
}

// Open reports whether more than one document binds.
func (s Standing) Open() bool { return len(s.Binding) > 1 || s.Returning }

// Standing returns what is in force of a limit of the newest document.
func (v *View) Standing(l *policy.Limit) Standing {
	t, changed := v.Agenda.changed[l.Bucket(nil)]
	if !changed {
		return v.begun(l, Standing{Binding: []Entry{{Document: v.Agenda.Newest(), Limit: l}}, From: len(v.Agenda.documents) - 1})
	}
	return v.standing(t)
}

// begun makes the region use nothing of a limit before it may; see View.After.
func (v *View) begun(l *policy.Limit, s Standing) Standing {
	if opens := v.begins(l); opens > v.Now {
		s.Returning, s.Opens = true, sooner(s.Opens, opens)
	}
	return s
}

func (v *View) begins(l *policy.Limit) quantity.StoreTime {
	if v.After == 0 {
		return 0
	}
	settles := int64(0)
	if l.Assign != nil {
		settles = policy.AssignSettles.Microseconds()
	}
	return max(over(l, v.After), v.After.Add(settles)).Add(fillOf(l))
}

// standing returns what is in force of a limit, by what all documents say of it.
func (v *View) standing(t terms) Standing {
	return v.begun(t.limit, v.stand(t, func(int, quantity.StoreTime) {}))
}

// stand is standing. It also calls tell with the place of each document that will count without the
// earlier ones, and from when on.
func (v *View) stand(t terms, tell func(place int, opens quantity.StoreTime)) (s Standing) {
	if v.Agenda.Kept() != nil && !slices.ContainsFunc(t.pieces, func(p policy.Piece) bool { return v.binds(&p) }) {
		s.From = 1
	}
	alone := s.From // place of the newest document known to count alone, now or later
	for j := s.From + 1; j < len(t.entries); j++ {
		if !v.Agenda.counts(j) {
			continue
		}
		opens, waiting := v.complete(t, s.From, j, true)
		switch {
		case waiting != nil:
			if v.waits(t, s.From, alone, j) {
				s.Waiting = waiting
			}
			continue
		case opens <= v.Now:
			s.From, s.Opens = j, 0
		default:
			tell(j, opens)
			s.Opens = sooner(s.Opens, opens)
		}
		s.Waiting, alone = nil, j
	}
	s.Binding = v.binding(t, s.From)
	for _, e := range s.Binding {
		if e.Piece != nil {
			s.Opens = sooner(s.Opens, e.Piece.Until)
		}
	}
	s.Returning = v.returning(s)
	return s
}

// sooner returns the earlier of two times; 0 stands for none.
func sooner(a, b quantity.StoreTime) quantity.StoreTime {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// binds reports whether a piece still binds.
func (v *View) binds(p *policy.Piece) bool { return p.Until == 0 || p.Until > v.Now }

// waits reports whether the document at place j waits for acknowledgements that matter. They matter
// if it gives other parts than the document at place alone, which needs no more of them, and if
// what is in its way does not end by itself.
func (v *View) waits(t terms, base, alone, j int) bool {
	if alone > base && !v.differ(t.entries, alone, j) {
		return false
	}
	_, waiting := v.complete(t, base, j, false)
	return waiting != nil
}

// differ reports whether the documents at two places give any region other parts of a limit.
func (v *View) differ(entries []*policy.Limit, i, j int) bool {
	older, newer := entries[i], entries[j]
	if older == nil || newer == nil {
		return older != newer
	}
	return !sameTerms(v.Agenda.documents[i], older, v.Agenda.documents[j], newer)
}

// binding returns what binds a limit if the documents from a place on do.
func (v *View) binding(t terms, from int) (some []Entry) {
	if from == 0 {
		for i := range t.pieces {
			if v.binds(&t.pieces[i]) {
				some = append(some, Entry{Document: v.Agenda.documents[0], Piece: &t.pieces[i]})
			}
		}
	}
	for i := from; i < len(t.entries); i++ {
		if t.entries[i] != nil {
			some = append(some, Entry{Document: v.Agenda.documents[i], Limit: t.entries[i]})
		} else if p := t.lacks(i); p != nil && t.lacks(i+1) != p {
			some = append(some, Entry{Document: v.Agenda.documents[i], Piece: p})
		}
	}
	return some
}

// returning reports whether anything binds that is of an earlier life of this region.
func (v *View) returning(s Standing) bool {
	life := v.Agenda.Newest().Life(v.Region)
	if v.Agenda.documents[s.From].Kept == nil {
		return v.Agenda.documents[s.From].Life(v.Region) < life
	}
	return v.Agenda.documents[1].Life(v.Region) < life || slices.ContainsFunc(s.Binding,
		func(e Entry) bool { return e.Piece != nil && e.Piece.Returned[v.Region] < life })
}

// over returns the store time from which on nothing weighs that was used or lent by a time.
func over(l *policy.Limit, at quantity.StoreTime) quantity.StoreTime { return termsOf(l).Over(at) }

// termsOf returns what the ends of cells depend on.
func termsOf(l *policy.Limit) algorithms.Terms {
	window := l.Window.Microseconds()
	t := algorithms.Terms{Kind: l.Algorithm, Window: window, Cell: l.Cell().Microseconds(),
		Tick: algorithms.Tick(l.Algorithm, l.Largest(), window)}
	if c, ok := l.Calendar(); ok {
		t.Calendar = c
	}
	if l.Algorithm.Sliding() {
		t.ClockMargin = algorithms.ClockMargin
	}
	return t
}

// fillOf returns how long an empty bucket of the whole limit takes to fill, in microseconds; 0 for
// windows. It fills at what the stores share.
func fillOf(l *policy.Limit) int64 {
	t := termsOf(l)
	t.Entitlement, _ = l.Shared()
	t.Burst = l.Burst
	return t.FillTime()
}
