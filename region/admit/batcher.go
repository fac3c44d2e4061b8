package admit

import (
	"context"
	"hash/maphash"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/rights"
	"github.com/quotad/quotad/region/rules"
	"github.com/quotad/quotad/region/store"
)

const (
	// maxBatched bounds the requests decided in one round trip, however fast the store is.
	maxBatched = 1024
	// underWay is how many round trips are made at a time: one would have a few callers wait for each other, many would
	// leave nothing to group.
	underWay = 4
)

// waiting is a request on its way through the store.
type waiting struct {
	rules   *rules.Rules
	applied []rules.Applied
	cost    int64
	commit  bool
	once    string          // key to be charged once under; empty: none
	caller  string          // whose request it is; empty: nobody's in particular
	until   time.Time       // when it is decided without the store
	gone    *atomic.Bool    // nobody waits for the answer any more; nil: somebody does
	answer  chan<- answered // buffered: nobody waits for a caller that has gone

	hash uint64 // of its buckets; 0: it has not queued
	work int64  // that it counts for in the queue
}

// answered is what the store said of one request.
type answered struct {
	decided algorithms.Decided // of all requests on the same buckets
	index   int                // of this one
	times   []int64            // the store's time for each bucket, where they are not in one shard; nil: decided.Now
	part    []rules.Applied    // the limits of which it was said, where those are not all of the request; nil: all
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
// carries many of them; requests on the same buckets become one script call with a list of costs, decided in order. That
// is exact, adds no timer, and costs a hot key a few script calls for a round trip instead of one for a request.
//
// Whoever comes while fewer round trips are under way than may be makes its own, which spares it two changes of goroutine;
// what has queued meanwhile is carried by run. Who waits is served in fair order (fairQueue), and only what can be decided
// in time may wait (admission.go).
type batcher struct {
	store    *store.Store
	rights   *rights.Engine
	breakers breakers
	repeats  int64         // how often a request is answered that is sent again by its id; 0: algorithms.DefaultRepeats
	more     chan struct{} // a run is to carry what is queued
	seed     maphash.Seed
	wakes    wakes
	stepped  bool // whoever asks makes the round trip, with all that waits

	mu      sync.Mutex
	queue   *fairQueue
	trips   int   // round trips under way, and those that runs have not begun with
	sent    int64 // work that is under way
	pace    pace
	refused Refused
}

func newBatcher(s *store.Store, r *rights.Engine, b breakers, queued int, deadline time.Duration) *batcher {
	return &batcher{store: s, rights: r, breakers: b, more: make(chan struct{}, underWay),
		seed: maphash.MakeSeed(), wakes: wakes{begins: make(chan struct{}, 1)}, queue: newFairQueue(queued), trips: underWay, pace: newPace(deadline)}
}

// enqueue hands a request over, or says why it may not wait: a *queueFull. A caller that may make a round trip makes
// it before enqueue returns; it takes as long as the store may, whatever becomes of ctx.
func (b *batcher) enqueue(ctx context.Context, w waiting) error {
	b.mu.Lock()
	if b.queue.length == 0 && b.trips < underWay {
		b.trips++
		b.mu.Unlock()
		b.decide(context.WithoutCancel(ctx), []waiting{w})
		b.passOn()
		return nil
	}
	err := b.wait(w, time.Now())
	begins := b.mayBegin()
	b.mu.Unlock()
	if begins {
		b.carry(context.WithoutCancel(ctx))
	}
	return err
}

// enqueueAll hands over several requests, each for itself, as enqueue does. refused hears of those that may not wait, by
// their place.
func (b *batcher) enqueueAll(ctx context.Context, all []waiting, refused func(place int, err error)) {
	b.mu.Lock()
	now := time.Now()
	for i, w := range all {
		if err := b.wait(w, now); err != nil {
			refused(i, err)
		}
	}
	begins := b.mayBegin()
	b.mu.Unlock()
	if begins {
		b.carry(context.WithoutCancel(ctx))
	}
}

// mayBegin begins a round trip for what is queued, if one more may be under way. The lock is held.
func (b *batcher) mayBegin() bool {
	if b.queue.length == 0 || b.trips >= underWay {
		return false
	}
	b.trips++
	return true
}

// carry makes a round trip with what is queued, and has a run make the next.
func (b *batcher) carry(ctx context.Context) {
	if batch := b.take(); len(batch) > 0 {
		b.decide(ctx, batch)
		b.passOn()
	}
}

// passOn ends a round trip, or has a run make the next with what has queued.
func (b *batcher) passOn() {
	b.mu.Lock()
	more := b.queue.length > 0
	if !more {
		b.trips--
	}
	b.mu.Unlock()
	if more {
		b.more <- struct{}{}
	}
}

// run carries what queues while round trips are under way, until ctx ends; there are as many of it as may be under way.
func (b *batcher) run(ctx context.Context) {
	for {
		for ctx.Err() == nil {
			batch := b.take()
			if len(batch) == 0 {
				break
			}
			b.decide(ctx, batch)
		}
		select {
		case <-ctx.Done():
			return
		case <-b.more:
		}
	}
}

// decide sends one batch and tells everyone.
func (b *batcher) decide(ctx context.Context, batch []waiting) {
	groups := group(b.withinReach(batch))
	if len(groups) == 0 {
		return
	}
	var work int64
	calls := make([]algorithms.Decide, len(groups))
	for i, g := range groups {
		calls[i] = algorithms.Decide{Fence: algorithms.Fence{Epoch: g[0].rules.Epoch}, Commit: g[0].commit, Once: g[0].once,
			Repeats: b.repeats}
		for _, a := range g[0].applied {
			a.Target.ExistsUntil = b.rights.Exists(a.Bucket)
			calls[i].Buckets = append(calls[i].Buckets, a.Target)
		}
		for _, w := range g {
			calls[i].Costs = append(calls[i].Costs, w.cost)
		}
		work += int64(len(g[0].applied)) * int64(scriptWork+(len(g)-1)*joinWork)
	}
	b.wakes.uses()
	begun := b.begin(work)
	results := b.store.Decide(ctx, calls)
	back := time.Now()
	timed := false
	for i := range results { // before any is judged: an answer to one call says that the server answers
		if !store.Unreached(results[i].Err) {
			b.breakers.hear(shardOf(calls[i]), back)
			timed = true
		}
	}
	for i, r := range results {
		if store.Unreached(r.Err) {
			r.Err = b.unreached(shardOf(calls[i]), begun, back, r.Err)
			timed = timed || isQueueFull(r.Err)
		}
		if (answered{decided: r.Value, err: r.Err}).ok() && calls[i].Commit && !r.Value.Repeated {
			b.rights.Observe(groups[i][0].applied, calls[i].Costs, r.Value)
		}
		for n, w := range groups[i] {
			w.answer <- answered{decided: r.Value, index: n, err: r.Err}
		}
	}
	b.end(work, timed, begun, back)
}

func shardOf(c algorithms.Decide) store.Shard { return store.ShardOf(c.Buckets[0].Key) }

// pipelineWork returns how much work the next round trip may carry. How fast a simulated store is, the wall clock does not say.
func (b *batcher) pipelineWork() int64 {
	if b.stepped {
		return math.MaxInt64
	}
	return b.pace.pipelineWork()
}

// begin notes work that is under way from now on.
func (b *batcher) begin(work int64) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent += work
	return time.Now()
}

// end notes that work is done, and how long it took if that says anything of the store.
func (b *batcher) end(work int64, timed bool, begun, back time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent -= work
	if timed {
		b.pace.done(begun, back, work)
	}
}

// unreached says what it means that a server left a call without an answer. If it did not answer in time while it
// answered others it is busy, and the breaker of its shard stays as it is; else it trips.
func (b *batcher) unreached(shard store.Shard, sent, now time.Time, err error) error {
	if store.Late(err) && b.breakers.answers(shard, sent, now, b.pace.deadline, b.wakes.starved(now, b.pace.deadline)) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.refused.Late++
		return &queueFull{retry: b.pace.takes(b.sent + b.queue.root.work)}
	}
	b.breakers.trip(shard)
	return err
}

// withinReach answers the requests that queued before the breaker of their shard tripped, and returns the others: what is
// sent to a server that does not answer holds up what is sent to others.
func (b *batcher) withinReach(batch []waiting) []waiting {
	within := batch[:0]
	for _, w := range batch {
		if b.breakers.tripped(store.ShardOf(w.applied[0].Target.Key)) {
			w.answer <- answered{err: errOutOfReach}
			continue
		}
		within = append(within, w)
	}
	return within
}

// group puts the requests on the same buckets, under the same limits, together, in order of arrival: as many as one
// script call may carry, then the next.
func group(batch []waiting) [][]waiting {
	if len(batch) == 1 && (batch[0].gone == nil || !batch[0].gone.Load()) {
		return [][]waiting{batch}
	}
	var groups [][]waiting
	var sizes []algorithms.Batch
	index := make(map[string]int, len(batch))
	for _, w := range batch {
		if w.gone != nil && w.gone.Load() {
			continue
		}
		k := w.signature()
		i, known := index[k]
		alone := !w.joins()
		known = known && !alone && sizes[i].Add(w.cost)
		if !known {
			i = len(groups)
			if !alone {
				index[k] = i
			}
			groups, sizes = append(groups, nil), append(sizes, w.batch())
		}
		groups[i] = append(groups[i], w)
	}
	return groups
}

// joins says whether a request may share a script call: a peek counts no other's cost, and who is remembered is decided
// by itself.
func (w *waiting) joins() bool { return w.commit && w.once == "" }

// shares says whether two requests share a script call: those that do have the same signature.
func (w *waiting) shares(other *waiting) bool {
	if !w.joins() || !other.joins() || w.hash != other.hash || w.rules != other.rules || len(w.applied) != len(other.applied) {
		return false
	}
	for i := range w.applied {
		if w.applied[i].Limit != other.applied[i].Limit || w.applied[i].Target.Key != other.applied[i].Target.Key {
			return false
		}
	}
	return true
}

// batch returns the request as the first of a script call.
func (w waiting) batch() (b algorithms.Batch) {
	for _, a := range w.applied {
		b.Counts(a.Target.Terms.Kind)
	}
	b.Add(w.cost)
	return b
}

// signature is equal for requests that may share a script call. A key holds the lengths of its parts, so a row of
// them is unambiguous.
func (w waiting) signature() string {
	var s strings.Builder
	s.WriteString(w.rules.Epoch)
	s.WriteString(strconv.FormatBool(w.commit))
	for _, a := range w.applied {
		s.WriteString(strconv.Itoa(a.Limit.Index))
		s.WriteString(a.Target.Key)
	}
	return s.String()
}
