package local

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
)

// maxBytes bounds the memory for what is spent without the store. A bucket and window take some 110
// bytes if the key has 30 bytes, so there is room for 900,000. What was spent in a window is kept
// until the window no longer counts. So when the memory is full, every further bucket is denied,
// which is counted (quotad_fallback_refused_total) and logged once a minute. Buckets that spent
// nothing take no memory.
const maxBytes = 96 << 20

// recordBytes is the memory of a bucket and window, without the part of the id that differs within
// its limit. BenchmarkRandomKeysInAnOutage measured it. It consists of the record, its place in the
// index at a map's usual load, and its place in the list of what the store is still to charge.
const recordBytes = 80

// Part meters what this node admits while it cannot use its region's store: of each bucket and
// window at most [allocator.LocalPart]. Until the store has charged it (Book), that comes on top
// of what was spent through the store in the window, and of what other nodes spend there. This is the
// price of on_store_failure: local. If the limit keeps a reserve, the part is [allocator.ReservePart]
// instead, which the store never had: nothing comes on top, and the store does not charge it. The
// meter's time never goes back, so that no window opens twice. Safe for concurrent use.
type Part struct {
	node   string
	nodes  int64
	store  *store.Store
	tenure *tenure.Tenure
	rights Rights
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
	margin  int64 // of clocks, and for what is owed
	number  quantity.Cell
}

// keyOf returns the key of a window of a bucket's limit.
func keyOf(a *rules.Applied, number quantity.Cell) windowKey {
	k := windowKey{headOf(a.Bucket.ID), a.Target.Terms.Windows(), a.Bucket.ClockMargin, number}
	if owes := a.Limit.MaxDebt; owes > 0 { // of a token_bucket it counts until that is refilled
		t := a.Target.Terms
		t.Burst = owes
		k.margin += t.FillTime()
	}
	return k
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
	kept     bool // all of it are charges that were kept (Keep), for which nothing was claimed
}

// due returns the units that the store has charged or is to charge.
func (s spent) due() quantity.Units { return s.units - s.reserved }

// Config holds what a node's part consists of.
type Config struct {
	Node    string
	Nodes   int // the region's number of nodes by configuration, at least 1
	Store   *store.Store
	Tenure  *tenure.Tenure
	Rights  Rights
	Journal *journal.Journal // nil: the node has no earlier life
	Writes  time.Duration    // how long writing a claim may take
	Now     func() time.Time // the node's wall clock
	Log     *slog.Logger
}

// Rights knows until when buckets exist, and has those restored that the store lost.
type Rights interface {
	// Exists returns until when a bucket exists, as far as this node knows.
	Exists(b *exchange.Bucket) quantity.StoreTime
	// Lose takes a store's error about a bucket. It reports whether the bucket is lost, and is
	// restored.
	Lose(ctx context.Context, b *exchange.Bucket, err error) bool
}

// New returns a node's part, of which nothing is spent.
func New(c Config) *Part {
	p := &Part{node: c.Node, nodes: int64(max(c.Nodes, 1)), store: c.Store, tenure: c.Tenure, rights: c.Rights, now: c.Now,
		log: c.Log, most: maxBytes, seed: maphash.MakeSeed(), windows: map[windowKey]*windowSpending{},
		admitted: prometheus.NewCounter(prometheus.CounterOpts{Name: "quotad_local_admitted_units_total",
			Help: "Units admitted without the store (on_store_failure: local), counted for each limit that they were charged to."}),
		booked: prometheus.NewCounter(prometheus.CounterOpts{Name: "quotad_local_booked_units_total",
			Help: "Units admitted without the store that it was charged with afterwards, or that no longer counted there; after a loss of the store again."})}
	if c.Journal != nil {
		p.claims = newClaims(c.Journal, c.Now, c.Writes, c.Log)
	}
	return p
}

// Collectors returns the metrics that are counted as units are admitted and charged.
func (p *Part) Collectors() []prometheus.Collector {
	return []prometheus.Collector{p.admitted, p.booked}
}

// of returns how many units this node may admit of a bucket in a window.
func (p *Part) of(a *rules.Applied) quantity.Units {
	t := a.Target.Terms
	if a.Reserve == nil {
		return allocator.LocalPart(t.Entitlement, a.Bucket.Lending, p.nodes, t.Kind.Sliding())
	}
	r := a.Reserve
	return allocator.ReservePart(r.Units, r.Burst, p.nodes, t.Kind.Sliding(), t.Kind.Bucket())
}

// Forget drops the windows that no longer count at a time.
func (p *Part) Forget(clock time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark = max(p.mark, quantity.StoreTime(clock.UnixMicro()))
	p.drop()
}

func (p *Part) drop() {
	kept := p.order[:0]
	for _, k := range p.order {
		if p.mark < k.ends() {
			kept = append(kept, k)
			continue
		}
		w := p.windows[k]
		p.bytes, p.buckets = p.bytes-w.bytes, p.buckets-len(w.index)
		p.expired += w.due
		delete(p.windows, k)
	}
	p.order = kept
}

// Status is what this node admitted without the store in windows that still count.
type Status struct {
	Buckets  int // a bucket counts once for each window
	Units    quantity.Units
	Unbooked int64 // part of Units that the store has not charged yet
	Bytes    int   // of memory, estimated; at most 96 MB
	// Refused is the number of requests that were denied because there was no memory for their
	// bucket, and Expired the number of units that no longer counted before the store could charge
	// them, both since the node's start.
	Refused int64
	Expired int64
}

// Status returns what the node admitted without the store.
func (p *Part) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{Buckets: p.buckets, Bytes: p.bytes, Refused: p.refused, Expired: p.expired}
	for _, w := range p.windows {
		s.Units += w.units
		s.Unbooked += w.due
	}
	return s
}
