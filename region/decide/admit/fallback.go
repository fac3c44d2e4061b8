package admit

import (
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/rights"
)

// maxFallbackBytes bounds the memory for what is spent without the store. A bucket and window take
// some 110 bytes if the key has 30 bytes, so there is room for 900,000. What was spent in a window
// is kept until the window no longer counts. So when the memory is full, every further bucket is
// denied, which is counted (quotad_fallback_refused_total) and logged once a minute. Buckets that
// spent nothing take no memory.
const maxFallbackBytes = 96 << 20

// fallbackRecordBytes is the memory of a bucket and window, without the part of the id that differs
// within its limit. BenchmarkRandomKeysInAnOutage measured it. It consists of the record, its place
// in the index at a map's usual load, and its place in the list of what the store is still to
// charge.
const fallbackRecordBytes = 80

// fallback meters what this node admits while it cannot use its region's store: of each bucket and
// window at most [allocator.LocalPart]. Until the store has charged it (Limiter.SettleLocal), that
// comes on top of what was spent through the store in the window, and of what other nodes spend
// there. This is the price of on_store_failure: local. If the limit keeps a reserve, the part is
// [allocator.ReservePart] instead, which the store never had: nothing comes on top, and the store
// does not charge it. The meter's time never goes back, so that no window opens twice.
type fallback struct {
	node   string
	nodes  int64
	store  *store.Store
	tenure *tenure.Tenure
	rights *rights.Engine
	now    func() time.Time
	log    *slog.Logger
	claims *claims // nil: the node has no earlier life
	most   int     // bytes
	seed   maphash.Seed

	booked, admitted prometheus.Counter

	mu      sync.Mutex
	mark    quantity.StoreTime // the latest time it has seen, microseconds since 1970
	windows map[windowKey]*windowSpending
	order   []windowKey // the keys of windows, the oldest first
	turn    int         // counts the calls of unsettled
	bytes   int         // memory used, estimated
	buckets int         // records in all windows
	refused int64       // requests denied because there was no memory for their bucket
	expired int64       // units that no longer counted before the store could charge them
}

// windowKey names a window of a limit.
type windowKey struct {
	head    string // the common beginning of the ids of the limit's buckets
	windows algorithms.Cells
	margin  int64 // of clocks
	number  quantity.Cell
}

// ends returns when nothing that was spent in the window counts any more, in microseconds since
// 1970. The sliding kinds still count it in the next window, and until the end of that the store
// may also charge it.
func (k windowKey) ends() quantity.StoreTime {
	return k.windows.Opens(k.number + 2).Add(k.margin)
}

// spent is what was admitted of one bucket in one window, in units.
type spent struct {
	units    quantity.Units
	reserved quantity.Units // part of units that came out of a reserve
	settled  quantity.Units // part of units that the store has charged
	id       idRef
	waits    bool // in the list of what the store is still to charge
}

// due returns the units that the store has charged or is to charge.
func (s spent) due() quantity.Units { return s.units - s.reserved }

// metered is the outcome of one cost on one bucket.
type metered struct {
	room   bool
	left   quantity.Units // remaining units of the part, after the cost if there was room
	reset  time.Duration  // until the window ends
	never  bool           // the cost is above the whole part
	window quantity.Cell  // number of the window that was charged
	fresh  *claiming      // not nil: what is to be claimed before anything is charged
}

// claiming is about this node's part of one bucket in one window.
type claiming struct {
	bucket string
	key    windowKey
}

// LocalConfig holds what a node's part consists of.
type LocalConfig struct {
	Node    string
	Nodes   int // the region's number of nodes by configuration, at least 1
	Store   *store.Store
	Tenure  *tenure.Tenure
	Rights  *rights.Engine
	Journal *journal.Journal // nil: the node has no earlier life
	Writes  time.Duration    // how long writing a claim may take
	Now     func() time.Time // the node's wall clock
	Log     *slog.Logger
}

// newFallback returns a node's part, of which nothing is spent.
func newFallback(c LocalConfig) *fallback {
	f := &fallback{node: c.Node, nodes: int64(max(c.Nodes, 1)), store: c.Store, tenure: c.Tenure, rights: c.Rights, now: c.Now,
		log: c.Log, most: maxFallbackBytes, seed: maphash.MakeSeed(), windows: map[windowKey]*windowSpending{},
		admitted: prometheus.NewCounter(prometheus.CounterOpts{Name: "quotad_local_admitted_units_total",
			Help: "Units admitted without the store (on_store_failure: local), counted for each limit that they were charged to."}),
		booked: prometheus.NewCounter(prometheus.CounterOpts{Name: "quotad_local_booked_units_total",
			Help: "Units admitted without the store that it was charged with afterwards, or that no longer counted there; after a loss of the store again."})}
	if c.Journal != nil {
		f.claims = newClaims(c.Journal, c.Now, c.Writes, c.Log)
	}
	return f
}

// Collectors returns the metrics that are counted as units are admitted and charged.
func (f *fallback) Collectors() []prometheus.Collector {
	return []prometheus.Collector{f.admitted, f.booked}
}

// part returns how many units this node may admit of a bucket in a window.
func (f *fallback) part(a *rules.Applied) quantity.Units {
	t := a.Target.Terms
	if a.Reserve == nil {
		return allocator.LocalPart(t.Entitlement, a.Bucket.Lending, f.nodes, t.Kind.Sliding())
	}
	r := a.Reserve
	return allocator.ReservePart(r.Units, r.Burst, f.nodes, t.Kind.Sliding(), t.Kind.Bucket())
}

// take charges a cost to this node's part of a bucket if there is room. If it is not known how much
// of a window was spent, all of it counts as spent.
func (f *fallback) take(a *rules.Applied, cost quantity.Units, commit bool,
	clock time.Time) metered {
	windows, part := a.Target.Terms.Windows(), f.part(a)
	k, fresh, full := f.look(a, clock)
	m := metered{window: k.number, never: cost > part,
		reset: microseconds(windows.Opens(k.number + 1).Sub(
			max(quantity.StoreTime(clock.UnixMicro()), windows.Opens(k.number))))}
	if cost > part || full {
		return m
	}
	if fresh && f.claims != nil {
		of := claiming{a.Bucket.ID, k}
		if before, err := f.claims.before(of); err != nil || before {
			return m
		}
		if !commit {
			m.fresh = &of
		} else if f.claims.claim([]claiming{of}) != nil {
			return m
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// The window may have ended while the journal was waited for.
	if windows.At(f.mark) != k.number {
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

// claimAll claims what is to be spent next. If that fails, take finds it unclaimed.
func (f *fallback) claimAll(all []claiming) {
	if f.claims != nil && len(all) > 0 {
		_ = f.claims.claim(all)
	}
}

// look returns the present window. fresh says that nothing of the bucket was metered in it yet.
// full says that there is no memory to do so.
func (f *fallback) look(a *rules.Applied, clock time.Time) (k windowKey, fresh, full bool) {
	windows := a.Target.Terms.Windows()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark = max(f.mark, quantity.StoreTime(clock.UnixMicro()))
	k = windowKey{headOf(a.Bucket.ID), windows, a.Bucket.ClockMargin, windows.At(f.mark)}
	if w, _ := f.find(k, a.Bucket.ID); w != nil {
		return k, false, false
	}
	full = !f.room(k, a.Bucket.ID)
	if full {
		f.refused++
	}
	return k, true, full
}

// room reports whether there is memory for one more bucket. If not, it first drops the windows that no
// longer count.
func (f *fallback) room(k windowKey, id string) bool {
	bytes := fallbackRecordBytes + len(id) - len(k.head)
	if f.bytes+bytes > f.most {
		f.drop()
	}
	return f.bytes+bytes <= f.most
}

// giveBack subtracts a cost from the window to which it was charged.
func (f *fallback) giveBack(a *rules.Applied, cost quantity.Units, number quantity.Cell) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := windowKey{headOf(a.Bucket.ID), a.Target.Terms.Windows(), a.Bucket.ClockMargin, number}
	if w, _ := f.find(k, a.Bucket.ID); w != nil {
		f.add(k, a, -cost)
	}
}

// localSpend is a spend that the store is to charge: all units admitted of a bucket in a window,
// without those out of a reserve.
type localSpend struct {
	bucket string // id
	window quantity.Cell
	units  quantity.Units
	of     windowKey
}

// unsettled returns spends that the store has not charged yet, at most the given number. A spend
// that could not be charged comes again after all others.
func (f *fallback) unsettled(most int) (all []localSpend) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Each call begins with another window, so that none keeps the others waiting.
	for i := range f.order {
		k := f.order[(f.turn+i)%len(f.order)]
		all = f.windows[k].unsettled(k, all, most)
	}
	f.turn++
	return all
}

// Admitted counts units that were admitted.
func (f *fallback) Admitted(units quantity.Units) { f.admitted.Add(float64(units)) }

// settled notes that the store has charged a spend. It returns how many of its units are charged
// for the first time.
func (f *fallback) settled(b localSpend) (units quantity.Units) {
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

// settleAnew has all spends charged once more, because the store may have lost what it charged. A
// store that lost nothing charges nothing twice.
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

// forget drops the windows that no longer count at a time.
func (f *fallback) forget(clock time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark = max(f.mark, quantity.StoreTime(clock.UnixMicro()))
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

// LocalStatus is what this node admitted without the store in windows that still count.
type LocalStatus struct {
	Buckets  int // a bucket counts once for each window
	Units    quantity.Units
	Unbooked int64 // part of Units that the store has not charged yet
	Bytes    int   // of memory, estimated; at most maxFallbackBytes
	// Refused is the number of requests that were denied because there was no memory for their
	// bucket, and Expired the number of units that no longer counted before the store could charge
	// them, both since the node's start.
	Refused int64
	Expired int64
}

// Status returns what the node admitted without the store.
func (f *fallback) Status() LocalStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := LocalStatus{Buckets: f.buckets, Bytes: f.bytes, Refused: f.refused, Expired: f.expired}
	for _, w := range f.windows {
		s.Units += w.units
		s.Unbooked += w.due
	}
	return s
}
