package barrier

import (
	"cmp"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// Heard holds the acknowledgements that a region knows of, its own among them: by region, and by
// document, the time of that region's store. An acknowledgement holds for ever.
type Heard map[string]map[policy.Epoch]quantity.StoreTime

// Add notes an acknowledgement, and says whether it is new. Of several times the earliest counts:
// each of them is a time from which on the region did not decide without the document.
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

// View is what one region makes of its agenda at a time of its store. It does not change once made,
// unless Heard does.
type View struct {
	Agenda Agenda
	Region string // whose view it is
	Heard  Heard
	Now    quantity.StoreTime // a time that every shard of the region's store has shown
	// Unsure says that the region may have worked under newer documents than it remembers, because
	// it lost its store and a journal. It uses nothing until the other regions have told.
	Unsure bool
	// Fence is the word of another region that this one is fenced, which no document takes back that
	// is open here; nil: none. This region uses nothing.
	Fence *Fence
}

// Fence is the word of a region that another one is fenced.
type Fence struct {
	From string // the region that says so
	Life int64  // that it ends: see [policy.Document.Life]
}

// Knows says whether the newest document says itself what becomes of a region of whose fence another
// region tells: it fences it, too, or the region has returned since.
func (a Agenda) Knows(region string, f Fence) bool {
	return a.Newest().Fences(region) || a.Newest().Life(region) > f.Life
}

// Only returns the view of a region that knows one document.
func Only(d *policy.Document, region string) *View {
	return &View{Agenda: Of(d), Region: region}
}

// Entry is an entry of a limit in one of the documents that bind.
type Entry struct {
	Document *policy.Document
	Limit    *policy.Limit
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
	// Waiting holds the regions whose acknowledgement of the newest document is waited for.
	Waiting []string
	// Returning says that the region was fenced and has returned, by a document that does not count
	// alone yet: it has nothing.
	Returning bool
}

// Open says whether more than one document binds.
func (s Standing) Open() bool { return len(s.Binding) > 1 || s.Returning }

// Changed says whether the open documents give a limit of the newest one different terms.
func (v *View) Changed(l *policy.Limit) bool { return v.Agenda.changed[l.Bucket(nil)] != nil }

// Standing returns what is in force of a limit of the newest document.
func (v *View) Standing(l *policy.Limit) Standing {
	entries := v.Agenda.changed[l.Bucket(nil)]
	if entries == nil {
		return Standing{Binding: []Entry{{v.Agenda.Newest(), l}}, From: len(v.Agenda.documents) - 1}
	}
	return v.standing(entries)
}

// standing returns what is in force of a limit, by its entries in all documents.
func (v *View) standing(entries []*policy.Limit) (s Standing) {
	alone := 0 // place of the newest document known to count alone, now or later
	for j := 1; j < len(entries); j++ {
		opens, waiting := v.complete(entries, s.From, j)
		switch {
		case waiting != nil:
			if v.differ(entries, alone, j) {
				s.Waiting = waiting
			}
			continue
		case opens <= v.Now:
			s.From, s.Opens = j, 0
		case s.Opens == 0:
			s.Opens = opens
		}
		s.Waiting, alone = nil, j
	}
	s.Binding = v.entries(entries, s.From)
	s.Returning = v.Agenda.documents[s.From].Life(v.Region) < v.Agenda.Newest().Life(v.Region)
	return s
}

// differ says whether the documents at two places give any region other parts of a limit.
func (v *View) differ(entries []*policy.Limit, i, j int) bool {
	older, newer := entries[i], entries[j]
	if older == nil || newer == nil {
		return older != newer
	}
	return !sameTerms(v.Agenda.documents[i], older, v.Agenda.documents[j], newer)
}

// entries returns the entries of the documents from a place on.
func (v *View) entries(all []*policy.Limit, from int) (some []Entry) {
	for i := from; i < len(all); i++ {
		if all[i] != nil {
			some = append(some, Entry{v.Agenda.documents[i], all[i]})
		}
	}
	return some
}

// complete says from when on the document at place j counts without those from base on, or whose
// acknowledgement is waited for. A document without the limit counts alone when every region that
// had a part of it has acknowledged that it has none.
func (v *View) complete(entries []*policy.Limit, base, j int) (opens quantity.StoreTime,
	waiting []string) {
	d := v.Agenda.documents[j]
	var w wait
	for i := base; i < j; i++ {
		if entries[i] != nil && v.differ(entries, i, j) {
			w.behind(v.Agenda.documents[i], entries[i], d, entries[j])
			for _, region := range w.shrinks {
				w.needs = append(w.needs, v.whose(region, v.Agenda.documents[i], d))
			}
		}
	}
	if entries[j] != nil && v.unknown(base, j) {
		w.behindAny(d, entries[j])
	}
	if !w.differs {
		return 0, nil
	}
	var latest quantity.StoreTime
	for _, region := range w.needs {
		at, known := v.acknowledged(region, d)
		if !known {
			waiting = append(waiting, region)
		}
		latest = max(latest, at)
	}
	if entries[j] != nil {
		waiting = append(waiting, v.majority(v.Agenda.documents[base], d)...)
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

// wait is what a newer document of a limit waits for before it counts alone.
type wait struct {
	differs       bool
	shrinks       []string // regions that have less by it than by the document looked at last
	needs         []string // regions whose acknowledgement it needs
	weighs        *policy.Limit
	settles, fill int64 // µs in which what Envoys hold is over, and in which a bucket fills
}

// behind adds what an older document gives of the limit. newer is nil if the newer document does
// not have it.
func (w *wait) behind(of *policy.Document, older *policy.Limit, by *policy.Document,
	newer *policy.Limit) {
	w.differs, w.weighs, w.fill = true, cmp.Or(newer, older), max(w.fill, fillOf(older))
	if newer == nil {
		w.shrinks = of.RegionNames()
		return
	}
	w.fill, w.settles = max(w.fill, fillOf(newer)), max(w.settles, settling(of, older, by, newer))
	w.shrinks = shrinking(of, older, by, newer)
}

// behindAny adds what a document that is not known may give of the limit: any region may have less
// by the newer one.
func (w *wait) behindAny(by *policy.Document, newer *policy.Limit) {
	w.differs, w.weighs, w.fill = true, newer, max(w.fill, fillOf(newer))
	w.needs = append(w.needs, by.RegionNames()...)
	if newer.Assign != nil {
		w.settles = max(w.settles, policy.AssignSettles.Microseconds())
	}
}

// acknowledged returns when a region acknowledged a document. A region that the document fences
// has, by the operator's word, when this region did.
func (v *View) acknowledged(region string, d *policy.Document) (quantity.StoreTime, bool) {
	if d.Fences(region) {
		region = v.Region
	}
	at, known := v.Heard[region][d.Epoch()]
	return at, known
}

// majority returns whose acknowledgement of a newer document is waited for because a majority of
// the regions of either document is needed; nil if both have it.
func (v *View) majority(base, newer *policy.Document) (waiting []string) {
	for _, of := range []*policy.Document{base, newer} {
		var missing []string
		for _, r := range of.Regions {
			if _, known := v.acknowledged(r.Name, newer); !known {
				missing = append(missing, r.Name)
			}
		}
		if 2*len(missing) >= len(of.Regions) {
			waiting = append(waiting, missing...)
		}
	}
	return waiting
}

// Lending returns the parts per million of its entitlement that a region may lend: all of it in
// home mode.
func Lending(l *policy.Limit) quantity.PPM {
	if l.Home() {
		return allocator.PPM
	}
	return quantity.PPM(l.LendingLimit)
}

// over returns the store time from which on nothing weighs that was used or lent by a time: the
// cell of that time and the next are over and weigh no more.
func over(l *policy.Limit, at quantity.StoreTime) quantity.StoreTime {
	terms := termsOf(l)
	return terms.Weighs(terms.CellAt(at) + 1)
}

// termsOf returns what the ends of cells depend on.
func termsOf(l *policy.Limit) algorithms.Terms {
	window := l.Window.Microseconds()
	t := algorithms.Terms{Kind: l.Algorithm, Window: window, Cell: l.Cell().Microseconds(),
		Tick: algorithms.Tick(l.Algorithm, max(l.Limit, l.Burst), window)}
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
