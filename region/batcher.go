package region

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/store"
)

const (
	// queueLength bounds the requests that wait for the store.
	queueLength = 8192
	// mostBatched bounds the requests decided in one round trip.
	mostBatched = 1024
	// underWay is how many round trips are made at a time: one would have a few callers wait for each other, many would
	// leave nothing to group.
	underWay = 4
)

// waiting is a request on its way through the store.
type waiting struct {
	rules   *rules
	applied []applied
	cost    int64
	commit  bool
	once    string          // key to be charged once under; empty: none
	until   time.Time       // when it is decided without the store
	gone    *atomic.Bool    // nobody waits for the answer any more; nil: somebody does
	answer  chan<- answered // buffered: nobody waits for a caller that has gone
}

// answered is what the store said of one request.
type answered struct {
	decided algorithms.Decided // of all requests on the same buckets
	index   int                // of this one
	times   []int64            // the store's time for each bucket, where they are not in one shard; nil: decided.Now
	part    []applied          // the limits of which it was said, where those are not all of the request; nil: all
	err     error
}

// at returns the store's time at which a bucket was looked at.
func (a answered) at(bucket int) int64 {
	if a.times != nil {
		return a.times[bucket]
	}
	return a.decided.Now
}

// ok says whether the store decided.
func (a answered) ok() bool { return a.err == nil && a.decided.Status == algorithms.StatusOK }

// lost says whether a bucket must be restored before the store can decide.
func (a answered) lost() bool { return a.err == nil && a.decided.Status == algorithms.StatusLost }

// batcher commits decisions in groups: while round trips to the store are under way, requests queue, and the next
// carries them all; requests on the same buckets become one script call with a list of costs, decided in order. That
// is exact, adds no timer, and costs a hot key a few script calls for a round trip instead of one for a request.
//
// Whoever comes while fewer round trips are under way than may be makes its own, which spares it two changes of goroutine;
// what has queued meanwhile is carried by run.
type batcher struct {
	store    Store
	seen     *seen
	breakers breakers
	repeats  int64 // how often a request is answered that is sent again by its id; 0: algorithms.DefaultRepeats
	queue    chan waiting
	trips    atomic.Int32                        // round trips under way, and those that runs have not begun with
	more     chan struct{}                       // a run is to carry what is queued
	observe  func([]waiting, algorithms.Decided) // hears what was decided and charged, before the callers do
}

func newBatcher(s Store, known *seen, b breakers, queued int, observe func([]waiting, algorithms.Decided)) *batcher {
	all := &batcher{store: s, seen: known, breakers: b, queue: make(chan waiting, queued), more: make(chan struct{}, underWay), observe: observe}
	all.trips.Store(underWay)
	return all
}

// enqueue hands a request over; false: the queue is full. A caller that may make a round trip makes it before enqueue
// returns; it takes as long as the store may, whatever becomes of ctx.
func (b *batcher) enqueue(ctx context.Context, w waiting) bool {
	select {
	case b.queue <- w:
	default:
		return false
	}
	if b.begin() {
		b.carry(context.WithoutCancel(ctx))
		b.passOn()
	}
	return true
}

// begin begins a round trip if one more may be under way.
func (b *batcher) begin() bool {
	for {
		n := b.trips.Load()
		if n >= underWay {
			return false
		}
		if b.trips.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// passOn ends a round trip, or has a run make the next with what has queued. Who queued a request after the look at the
// queue and before the end has left it to us.
func (b *batcher) passOn() {
	for {
		if len(b.queue) > 0 {
			b.more <- struct{}{}
			return
		}
		b.trips.Add(-1)
		if len(b.queue) == 0 || !b.begin() {
			return
		}
	}
}

// run carries what queues while round trips are under way, until ctx ends; there are as many of it as may be under way.
func (b *batcher) run(ctx context.Context) {
	for {
		for len(b.queue) > 0 && ctx.Err() == nil {
			b.carry(ctx)
		}
		b.passOn()
		select {
		case <-ctx.Done():
			return
		case <-b.more:
		}
	}
}

// carry makes one round trip with what is queued.
func (b *batcher) carry(ctx context.Context) {
	batch := make([]waiting, 0, min(len(b.queue), mostBatched))
	for len(batch) < mostBatched {
		select {
		case w := <-b.queue:
			batch = append(batch, w)
			continue
		default:
		}
		break
	}
	if len(batch) > 0 {
		b.decide(ctx, batch)
	}
}

// decide sends one batch and tells everyone.
func (b *batcher) decide(ctx context.Context, batch []waiting) {
	groups := group(b.withinReach(batch))
	if len(groups) == 0 {
		return
	}
	calls := make([]algorithms.Decide, len(groups))
	for i, g := range groups {
		calls[i] = algorithms.Decide{Guard: algorithms.Guard{Epoch: g[0].rules.epoch}, Commit: g[0].commit, Once: g[0].once,
			Repeats: b.repeats}
		for _, a := range g[0].applied {
			a.target.Known = b.seen.known(a.bucket.ID)
			calls[i].Buckets = append(calls[i].Buckets, a.target)
		}
		for _, w := range g {
			calls[i].Costs = append(calls[i].Costs, w.cost)
		}
	}
	for i, r := range b.store.Decide(ctx, calls) {
		if store.Unreached(r.Err) {
			b.breakers.trip(store.ShardOf(calls[i].Buckets[0].Key))
		}
		if (answered{decided: r.Value, err: r.Err}).ok() && calls[i].Commit && !r.Value.Repeated {
			b.observe(groups[i], r.Value)
		}
		for n, w := range groups[i] {
			w.answer <- answered{decided: r.Value, index: n, err: r.Err}
		}
	}
}

// withinReach answers the requests that queued before the breaker of their shard tripped, and returns the others: what is
// sent to a server that does not answer holds up what is sent to others.
func (b *batcher) withinReach(batch []waiting) []waiting {
	within := batch[:0]
	for _, w := range batch {
		if b.breakers.tripped(store.ShardOf(w.applied[0].target.Key)) {
			w.answer <- answered{err: errOutOfReach}
			continue
		}
		within = append(within, w)
	}
	return within
}

// group puts the requests on the same buckets, under the same limits, together, in order of arrival.
func group(batch []waiting) [][]waiting {
	var groups [][]waiting
	index := make(map[string]int, len(batch))
	for _, w := range batch {
		if w.gone != nil && w.gone.Load() {
			continue
		}
		k := w.signature()
		i, known := index[k]
		alone := !w.commit || w.once != "" // a peek counts no other's cost, and who is remembered is decided by itself
		known = known && !alone
		if !known {
			i = len(groups)
			if !alone {
				index[k] = i
			}
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], w)
	}
	return groups
}

// signature is equal for requests that may share a script call. A key holds the lengths of its parts, so a row of
// them is unambiguous.
func (w waiting) signature() string {
	var s strings.Builder
	s.WriteString(w.rules.epoch)
	s.WriteString(strconv.FormatBool(w.commit))
	for _, a := range w.applied {
		s.WriteString(strconv.Itoa(a.limit.Index))
		s.WriteString(a.target.Key)
	}
	return s.String()
}
