package sim

import (
	"maps"
	"math"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// spell is a time during which the same documents were in force: those under which some region may
// admit something.
type spell struct {
	versions []int64
	from, to quantity.StoreTime // by the clocks of all regions; to is math.MaxInt64 while it lasts
}

// underWay is a node's documents as the simulation knows them.
type underWay struct {
	epoch string
	life  int // in which the node had them; 0: it does not live
}

// noteDocuments notes which documents are in force from now on, if that has changed.
func (w *world) noteDocuments() {
	if len(w.documents) == 1 {
		return
	}
	changed := false
	for _, r := range w.regions {
		for _, n := range r.nodes {
			now := underWay{}
			if n.live != nil {
				now = underWay{n.live.Epoch(), n.life}
			}
			if now != n.under {
				n.under, changed, r.changed = now, true, w.now
			}
		}
	}
	if !changed {
		return
	}
	for _, r := range w.regions {
		r.noteOpen()
	}
	var all []int64
	for _, r := range w.regions {
		why := r.excluded()
		if why == "" {
			all = append(all, r.open...)
		} else if r.ended > r.judged {
			r.ranAhead()
		}
		r.judged = r.ended
		switch {
		case why != unaware:
			r.unaware = -1
		case r.unaware < 0:
			r.unaware = w.now
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	last := &w.spells[len(w.spells)-1]
	if len(all) == 0 || slices.Equal(all, last.versions) {
		return
	}
	w.reaches()
	last.to = w.latest()
	w.spells = append(w.spells, spell{versions: all, from: w.earliest(), to: math.MaxInt64})
}

// reaches has the present spell begin no later than any clock shows now, and so the one before end
// no earlier.
func (w *world) reaches() {
	last := &w.spells[len(w.spells)-1]
	last.from = min(last.from, w.earliest())
	if n := len(w.spells); n > 1 {
		w.spells[n-2].to = max(w.spells[n-2].to, last.from)
	}
}

// latest returns the latest time that any region's store can have shown.
func (w *world) latest() (latest quantity.StoreTime) {
	for _, r := range w.regions {
		latest = max(latest, r.latest())
	}
	return latest
}

// noteOpen notes which documents are open in a region, by the nodes that live: what a dead node knew
// counts only while nobody else lives. It notes the fences of these documents.
func (r *region) noteOpen() {
	var all []int64
	for _, n := range r.nodes {
		if n.live == nil {
			continue
		}
		for _, d := range n.live.Documents() {
			if d.Kept == nil {
				all = append(all, d.Version)
				continue
			}
			for version := d.Kept.Oldest; version <= d.Kept.Through; version++ {
				all = append(all, version)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	r.open = slices.Compact(all)
	for _, version := range r.open {
		d := r.w.documents[version-1]
		for _, other := range r.w.regions {
			if d.Fences(other.name) {
				other.ended = max(other.ended, d.Life(other.name)+1)
			}
		}
	}
}

// newest returns the newest document that is open in the region; nil: none ever was.
func (r *region) newest() *policy.Document {
	if len(r.open) == 0 {
		return nil
	}
	return r.w.documents[r.open[len(r.open)-1]-1]
}

// excluded returns why a region has no part of anything: it has no documents, or knows that it is
// removed or fenced, or is fenced and does not know it (unaware). Empty: it has its part.
func (r *region) excluded() string {
	d := r.newest()
	switch {
	case d == nil:
		return "has no document"
	case !belongs(d, r.name):
		return "knows that it has no part"
	case d.Life(r.name) < r.ended:
		return unaware
	}
	return ""
}

// unaware is the state of a region that was fenced and does not know it.
const unaware = "does not know that it is fenced"

// belongs reports whether a document gives a region parts.
func belongs(d *policy.Document, region string) bool {
	return has(d, region) && !d.Fences(region)
}

// whileFenced allows what a region admits that was fenced and does not know it, as far as the term
// for it reaches: in each window all that it may hold, of a bucket what it holds and refills.
func (b *bucket) whileFenced(r *region, at quantity.StoreTime, units quantity.Units) {
	if r.unaware < 0 {
		return
	}
	who, term := spentFenced{region: r.index}, quantity.Units(0)
	if b.limit.kind().Bucket() {
		term = b.termAgain(r.index, b.limit.w.now-r.unaware)
	} else {
		who.window, term = b.windowAt(at), b.termMemory(r.index)
	}
	if units = min(units, term-b.fenced[who]); units > 0 {
		b.fenced[who] += units
		b.allow(r, units, r.name+" runs while it is fenced", false)
	}
}

// ranAhead allows what a region that is fenced now has admitted, or lent, of windows that have not
// begun everywhere, since clocks are ahead. The others have its part of them.
func (r *region) ranAhead() {
	earliest := r.w.earliest()
	ahead := r.w.latest().Sub(earliest)
	if ahead <= 0 {
		return
	}
	cause := r.name + " was fenced, and windows had not begun everywhere of which it had admitted or lent"
	for _, b := range r.w.buckets() {
		first, sum := b.windowAt(earliest), quantity.Units(0)
		if b.limit.kind() == algorithms.FixedWindow {
			first++ // the part of the present one is the region's until it is over
		}
		for window, units := range b.partedWith(r) {
			if window < first {
				continue
			}
			sum += units
			if weighs := int64(0); !b.limit.kind().Bucket() {
				if b.limit.kind().Sliding() {
					weighs = 2 * b.window()
				}
				b.allowFor(b.windows().Opens(quantity.Cell(window)), b.windows().Opens(quantity.Cell(window+1)).Add(weighs-1),
					min(units, b.termMemory(r.index)), cause)
			}
		}
		if b.limit.kind().Bucket() {
			b.allowFor(earliest, math.MaxInt64, min(sum, b.termAgain(r.index, ahead)), cause)
		}
	}
}

// partedWith returns what a region admitted and lent of a bucket, by window.
func (b *bucket) partedWith(r *region) map[int64]quantity.Units {
	f := &b.flows[r.index]
	all := maps.Clone(f.admitted)
	if all == nil {
		all = map[int64]quantity.Units{}
	}
	for k, row := range f.rows {
		all[b.windowAt(b.cells().Opens(k.cell))] += row.Lent
	}
	return all
}

// spentFenced identifies what a fenced region admits. For buckets the window is 0.
type spentFenced struct {
	region int
	window int64
}

// inForce returns the entries of the limit in the documents that are in force at some time of a
// stretch, both ends included.
func (l *limit) inForce(from, to quantity.StoreTime) (all []entry) {
	for _, s := range l.w.spells {
		if s.from > to || s.to < from {
			continue
		}
		for _, version := range s.versions {
			if e, has := l.of(version); has {
				all = append(all, e)
			}
		}
	}
	return all
}

// ceiling returns the most that the judge may count in a cell: the largest limit, or burst of a
// bucket, that was in force in the cell or while something still weighed that weighs in the cell.
func (b *bucket) ceiling(cell quantity.Cell) (most quantity.Units) {
	opens := b.cells().Opens(cell)
	for _, e := range b.limit.inForce(b.weighsSince(opens), b.cells().Opens(cell+1)-1) {
		if b.limit.kind().Bucket() {
			most = max(most, e.Burst)
		} else {
			most = max(most, e.Limit.Limit-b.limit.w.plan.lowered, 1)
		}
	}
	return most
}

// weighsSince returns since when something may have been admitted that still weighs at a time.
func (b *bucket) weighsSince(t quantity.StoreTime) quantity.StoreTime {
	switch k := b.limit.kind(); {
	case k == algorithms.FixedWindow:
		return t
	case k == algorithms.SlidingWindowLog:
		return t.Add(-b.window())
	case k == algorithms.SlidingWindowCounter:
		return b.cells().Opens(b.cells().At(t) - 1)
	}
	return t // by the burst of then: see oracle.Rate
}

// drains returns what the largest bucket of any document holds, in units times the window (µs).
func (l *limit) drains() float64 {
	return float64(l.rule.Burst) * float64(l.policy.Window.Microseconds())
}

// rates returns the highest rate and burst in force of a bucket, from when on.
func (l *limit) rates() (all []oracle.Rate) {
	var times []quantity.StoreTime
	for _, s := range l.w.spells {
		times = append(times, s.from, min(s.to, math.MaxInt64-1)+1)
	}
	slices.Sort(times)
	for _, t := range slices.Compact(times) {
		rate, burst := quantity.Units(0), quantity.Units(0)
		for _, e := range l.inForce(t, t) {
			rate, burst = max(rate, e.Limit.Limit-l.w.plan.lowered, 1), max(burst, e.Burst)
		}
		if rate == 0 { // nothing is admitted meanwhile
			rate = quantity.Units(l.rule.Limit)
		}
		all = append(all, oracle.Rate{From: int64(t), Limit: int64(rate), Burst: int64(burst)})
	}
	return all
}
