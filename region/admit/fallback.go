package admit

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/region/rules"
)

// maxFallbackBytes bounds the memory of what is metered without the store: some 110 bytes for each
// bucket and window whose key has 30 bytes, which makes 900,000 of them. What was spent in a window
// is kept until the window counts no more, so beyond the bound every further bucket is denied:
// counted (quotad_fallback_refused_total), and logged once a minute. Buckets that spent nothing
// take no memory.
const maxFallbackBytes = 96 << 20

// fallbackRecordBytes is what a bucket and window take beside the part of its id that differs
// within its limit, as measured by BenchmarkRandomKeysInAnOutage: the record, its place in the
// index at a map's usual load, and its place among those that the store is to be told of.
const fallbackRecordBytes = 80

// fallback meters what this node admits while its region's store cannot be used: of each bucket and
// window at most [allocator.LocalPart]. It comes on top of what was spent through the store in that
// window, and of what other nodes spend there, until the store has been told (Limiter.SettleLocal): that is
// the price of local. Where the limit keeps a reserve it is [allocator.ReservePart] instead, which
// never was the store's: nothing comes on top, and the store is not told. Its time never goes back,
// so that no window opens twice.
type fallback struct {
	nodes int64
	claim claim
	most  int // bytes
	seed  maphash.Seed

	mu      sync.Mutex
	mark    int64 // the latest time it has seen, microseconds
	windows map[windowKey]*windowSpending
	order   []windowKey // of windows, the oldest first
	turn    int         // of unsettled
	bytes   int
	buckets int
	refused int64 // requests denied because there was no memory for their bucket
	expired int64 // units that counted no more before the store could be charged
}

// windowKey names a window of a limit.
type windowKey struct {
	head   string // what the ids of the limit's buckets begin with
	length int64
	margin int64 // of clocks
	number int64
}

// ends returns when nothing that was spent in the window counts any more: the sliding kinds still
// count it in the next, in which the store may also be told of it.
func (k windowKey) ends() int64 { return (k.number+2)*k.length + k.margin }

// spent is what was admitted of one bucket in a window.
type spent struct {
	units    int64
	reserved int64 // of units, those out of a reserve
	settled  int64 // of units, those that the store has charged
	id       idRef
	waits    bool // it is among those that the store is to be told of
}

// due returns the units that are the store's to charge.
func (s spent) due() int64 { return s.units - s.reserved }

// metered is the outcome of one cost on one bucket.
type metered struct {
	room   bool
	left   int64         // of the part, after the cost if there was room
	reset  time.Duration // until the window ends
	never  bool          // the cost is above the whole part
	window int64         // that was charged
}

// claiming is a bucket of whose part in a window something is to be spent.
type claiming struct {
	bucket string
	key    windowKey
	spend  bool // false: it is only asked
}

// claim says whether an earlier life of this node may have spent its part of a bucket in a window;
// if not, and it is to be spent now, it notes durably that it is.
type claim func(c claiming) (before bool, err error)

// newFallback returns a meter; without a claim the node has no earlier life.
func newFallback(nodes int, c claim) *fallback {
	return &fallback{nodes: int64(nodes), claim: c, most: maxFallbackBytes, seed: maphash.MakeSeed(),
		windows: map[windowKey]*windowSpending{}}
}

// part returns what this node may admit of a bucket in a window.
func (f *fallback) part(a rules.Applied) int64 {
	t := a.Target.Terms
	if a.Reserve == nil {
		return allocator.LocalPart(t.Entitlement, a.Bucket.Lending, f.nodes, t.Kind.Sliding())
	}
	r := a.Reserve
	return allocator.ReservePart(r.Units, r.Burst, f.nodes, t.Kind.Sliding(), t.Kind.Bucket())
}

// take charges a cost to this node's part of a bucket if there is room. Where nobody knows what was
// spent of a window, all of it was.
func (f *fallback) take(a rules.Applied, cost int64, commit bool, clock time.Time) metered {
	length, part := a.Target.Terms.Window, f.part(a)
	k, fresh, full := f.look(a, clock)
	m := metered{window: k.number, never: cost > part,
		reset: microseconds((k.number+1)*length - max(clock.UnixMicro(), k.number*length))}
	if cost > part || full {
		return m
	}
	if fresh && f.claim != nil {
		if before, err := f.claim(claiming{a.Bucket.ID, k, commit}); err != nil || before {
			return m
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at(length) != k.number { // it ended while the journal was waited for
		return m
	}
	var s spent
	w, i := f.find(k, a.Bucket.ID)
	if w != nil {
		s = *w.record(i)
	}
	m.room = s.units+cost <= part
	m.left = max(part-s.units, 0)
	if !m.room {
		return m
	}
	if commit && w == nil && !f.begin(k, a.Bucket.ID) {
		return metered{window: k.number, reset: m.reset}
	}
	m.left -= cost
	if commit {
		f.add(k, a, cost)
	}
	return m
}

// at returns the number of the present window.
func (f *fallback) at(length int64) int64 { return algorithms.CellAt(f.mark, length) }

// look returns the present window, whether nothing of the bucket was metered there yet, and whether
// there is no memory to.
func (f *fallback) look(a rules.Applied, clock time.Time) (k windowKey, fresh, full bool) {
	length := a.Target.Terms.Window
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark = max(f.mark, clock.UnixMicro())
	k = windowKey{headOf(a.Bucket.ID), length, a.Bucket.ClockMargin, f.at(length)}
	if w, _ := f.find(k, a.Bucket.ID); w != nil {
		return k, false, false
	}
	full = !f.room(k, a.Bucket.ID)
	if full {
		f.refused++
	}
	return k, true, full
}

// room says whether there is memory for one bucket more, once windows that count no more have gone.
func (f *fallback) room(k windowKey, id string) bool {
	bytes := fallbackRecordBytes + len(id) - len(k.head)
	if f.bytes+bytes > f.most {
		f.drop()
	}
	return f.bytes+bytes <= f.most
}

// giveBack takes a cost back out of the window it was charged to.
func (f *fallback) giveBack(a rules.Applied, cost, number int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := windowKey{headOf(a.Bucket.ID), a.Target.Terms.Window, a.Bucket.ClockMargin, number}
	if w, _ := f.find(k, a.Bucket.ID); w != nil {
		f.add(k, a, -cost)
	}
}

// localSpend is what the store is to charge: units in all that were admitted in a window, but for
// those out of a reserve.
type localSpend struct {
	bucket string // id
	window int64
	units  int64
	of     windowKey
}

// unsettled returns what the store has not charged yet, at most so many. Who could not be charged is
// told of again after all others.
func (f *fallback) unsettled(most int) (all []localSpend) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.order { // another first each time, so that none keeps the others waiting
		k := f.order[(f.turn+i)%len(f.order)]
		all = f.windows[k].unsettled(k, all, most)
	}
	f.turn++
	return all
}

// settled notes that the store has charged a spend, and returns how many of its units had not been
// charged before.
func (f *fallback) settled(b localSpend) (units int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, i := f.find(b.of, b.bucket)
	if w == nil {
		return 0
	}
	s := *w.record(i)
	units = max(b.units-s.settled, 0)
	s.settled = max(s.settled, b.units)
	w.put(i, s)
	return units
}

// settleAnew has everything charged once more: the store that has charged it may have lost it. One
// that has not charges nothing twice.
func (f *fallback) settleAnew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.windows {
		for i := range uint32(len(w.index)) {
			s := *w.record(i)
			s.settled = 0
			w.put(i, s)
		}
	}
}

// forget drops the windows of which nothing counts any more.
func (f *fallback) forget(clock time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark = max(f.mark, clock.UnixMicro())
	f.drop()
}

func (f *fallback) drop() {
	kept := f.order[:0]
	for _, k := range f.order {
		if f.mark < k.ends() {
			kept = append(kept, k)
			continue
		}
		w := f.windows[k]
		f.bytes, f.buckets = f.bytes-w.bytes, f.buckets-len(w.index)
		f.expired += w.due
		delete(f.windows, k)
	}
	f.order = kept
}

// LocalStatus is what this node admitted without the store, of windows that still count.
type LocalStatus struct {
	Buckets  int // in two windows a bucket counts twice
	Units    int64
	Unbooked int64 // of the units, those that the store has not charged yet
	Bytes    int   // of memory, about; at most maxFallbackBytes
	Refused  int64 // requests denied, since the node's start, because there was no memory for their bucket
	Expired  int64 // units that counted no more, since the node's start, before the store could be charged
}

func (f *fallback) status() LocalStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := LocalStatus{Buckets: f.buckets, Bytes: f.bytes, Refused: f.refused, Expired: f.expired}
	for _, w := range f.windows {
		s.Units += w.units
		s.Unbooked += w.due
	}
	return s
}
