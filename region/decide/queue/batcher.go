package queue

import (
	"context"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

const (
	// maxBatched bounds the requests decided in one round trip, however fast the store is.
	maxBatched = 1024
	// gathered is how many requests must wait so that a round trip begins without letting others
	// run first: a full script call. Under overload the others would be many, and Redis idle
	// meanwhile.
	gathered = 64
)

// batcher decides requests in groups. While round trips to the store are under way, requests queue,
// and the next round trip carries many of them. Requests on the same buckets become one script call
// with a list of costs, decided in order. That is exact and adds no timer, and a hot key costs a
// few script calls for each round trip instead of one for each request.
//
// A caller that comes while fewer than underWay round trips are under way makes its own, which
// saves two switches of goroutine. A goroutine carries what has queued meanwhile. Before each
// round trip, other goroutines that are ready to run get their turn (gather), and so does a request
// that was read already but has not reached the queue. Waiting requests are served in fair order
// (fairQueue), and those that can no longer be answered in time leave the queue before the script is
// called (admission.go).
type batcher struct {
	shared
	underWay int

	mu      sync.Mutex
	fair    *fairQueue
	trips   int       // round trips under way, and those that will begin
	sent    int64     // work under way
	held    time.Time // since when round trips are held back; zero: they are not
	pace    pace
	refused Refused
}

// shared is what the batchers of a node have in common.
type shared struct {
	store    *store.Store
	rights   Rights
	breakers breakers
	wakes    *wakes
	elapsed  func() time.Duration
	on       Executor
}

// newBatcher returns a batcher that makes so many round trips at a time, and none before begin.
func newBatcher(common shared, deadline time.Duration, underWay int) *batcher {
	return &batcher{shared: common, underWay: underWay, fair: newFairQueue(queueLength),
		trips: underWay, pace: newPace(deadline, underWay)}
}

// begin has the batcher carry what waits. It is called once.
func (b *batcher) begin() {
	for range b.underWay {
		b.on.Go(b.run)
	}
}

// enqueue hands a request over. The error is an *Overload if there is no place for it. If another
// round trip may begin, the caller makes it before enqueue returns: that takes as long as the store
// does, even if ctx ends. For a hurried request a goroutine of its own makes it.
func (b *batcher) enqueue(ctx context.Context, w Ask) error {
	b.mu.Lock()
	if b.fair.length == 0 && b.trips < b.underWay {
		b.trips++
		b.mu.Unlock()
		w.hash = hashOf(w.Applied)
		b.begins(ctx, b.hurried(&w), w)
		return nil
	}
	err := b.wait(w)
	begins := b.mayBegin()
	b.mu.Unlock()
	if begins {
		b.begins(ctx, b.hurried(&w))
	}
	return err
}

// hurried reports whether a request's caller gives up before the store would be given up. One that
// asks again, or in another shard, has less time than it had. What passes until a request first asks
// is within what is left for answering.
func (b *batcher) hurried(w *Ask) bool {
	left := w.Until.Sub(w.Came)
	if waited := b.on.Now().Sub(w.Came); waited > AnswerBefore/answeredParts {
		left -= waited
	}
	return left < b.pace.deadline
}

// begins makes a round trip, in a goroutine of its own if the caller cannot wait for it.
func (b *batcher) begins(ctx context.Context, hurried bool, first ...Ask) {
	ctx = context.WithoutCancel(ctx)
	if hurried {
		b.on.Go(func() { b.carry(ctx, first...) })
		return
	}
	b.carry(ctx, first...)
}

// queueAll has some of the requests wait, those in the places of part. It calls refused for each
// that may not, with its index. It returns whether one is hurried, and whether the caller has to
// make a round trip (begins).
func (b *batcher) queueAll(all []Ask, part []int, refused func(place int, err error)) (hurried,
	begins bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range part {
		if err := b.wait(all[i]); err != nil {
			refused(i, err)
		}
		hurried = hurried || b.hurried(&all[i])
	}
	return hurried, b.mayBegin()
}

// mayBegin begins a round trip if requests are queued and fewer than underWay are under way. It
// returns whether it did. The caller holds the lock.
func (b *batcher) mayBegin() bool {
	if b.fair.length == 0 || b.trips >= b.underWay {
		return false
	}
	b.trips++
	return true
}

// gather lets the goroutines run that are ready, so that their requests queue. It returns at once
// if there are none, or if gathered requests wait already.
func (b *batcher) gather() {
	b.mu.Lock()
	enough := b.fair.length >= gathered
	b.mu.Unlock()
	if !enough {
		b.on.Yield()
	}
}

// carry makes a round trip with requests that have not queued and with queued ones, and has a
// goroutine make the next.
func (b *batcher) carry(ctx context.Context, first ...Ask) {
	b.gather()
	batch := b.take(first...)
	if len(batch) > 0 {
		b.decide(ctx, batch)
		b.passOn()
	}
	forget(batch)
}

// passOn ends a round trip. If requests have queued meanwhile it has a goroutine make another one
// instead.
func (b *batcher) passOn() {
	b.mu.Lock()
	more := b.fair.length > 0
	if !more {
		b.trips--
	}
	b.mu.Unlock()
	if more {
		b.on.Go(b.run)
	}
}

// run makes round trips until no requests are queued. At most underWay goroutines run it.
func (b *batcher) run() {
	for {
		b.gather()
		batch := b.take()
		if len(batch) > 0 {
			b.decide(context.Background(), batch)
		}
		if forget(batch); len(batch) == 0 {
			return
		}
	}
}

// batches has the memory of batches that are decided.
var batches = sync.Pool{New: func() any { return new([]Ask) }}

// forget gives back the memory of a batch.
func forget(batch []Ask) {
	clear(batch)
	batches.Put(&batch)
}

// decide sends one batch to the store and answers all its requests.
func (b *batcher) decide(ctx context.Context, batch []Ask) {
	groups := group(b.withinReach(batch))
	if len(groups) == 0 {
		return
	}
	calls, work := b.calls(groups)
	b.wakes.uses()
	alone, begun := b.send(work)
	asked, generation := b.elapsed(), b.store.Generation()
	decide := b.store.Decide
	if b.wakes.starved(begun, b.pace.deadline) {
		decide = b.store.DecidePatiently
	}
	results := decide(ctx, calls)
	back, heard := b.on.Now(), b.elapsed()
	of, timed := heardOf{generation, asked, heard}, false
	// This comes before any result is judged: an answer to one call proves that the server answers.
	for i := range results {
		if !store.Unreached(results[i].Err) {
			b.breakers.hear(shardOf(calls[i]), back)
			timed = true
		}
	}
	for i, r := range results {
		if store.Unreached(r.Err) {
			r.Err = b.unreached(shardOf(calls[i]), begun, back, r.Err)
			timed = timed || IsOverload(r.Err)
		}
		if r.Err == nil && !r.Value.Repeated {
			b.observe(groups[i], &calls[i], r.Value, of)
		}
		for n, w := range groups[i] {
			w.answer <- Answer{Decided: r.Value, Index: n, of: of, Err: r.Err}
		}
	}
	b.end(work, alone, timed, begun, back)
}

// observe tells of what a call answered to a group of requests.
func (b *batcher) observe(group []Ask, c *algorithms.Decide, d algorithms.Decided, of heardOf) {
	switch first := &group[0]; {
	case !c.Commit:
	case first.Ahead:
		b.rights.ObserveAhead(first.Applied, d)
		learn(group, d, of)
	default:
		b.rights.Observe(first.Applied, c, d)
		learn(group, d, of)
	}
}

// calls returns the Decide of each group, and the work of all.
func (b *batcher) calls(groups [][]Ask) (calls []algorithms.Decide, work int64) {
	requests, applied := 0, 0
	for _, g := range groups {
		requests, applied = requests+len(g), applied+len(g[0].Applied)
	}
	calls = make([]algorithms.Decide, len(groups))
	costs, buckets := make([]quantity.Units, 0, requests+applied), make([]algorithms.LimitTarget, 0, applied)
	for i, g := range groups {
		first := &g[0]
		for _, a := range first.Applied {
			target := a.Target
			target.ExistsUntil = b.rights.ExistsFound(a)
			if first.Charge {
				target.Always, target.Alternative, target.MostOwed = true, false, a.Limit.MaxDebt
			}
			buckets = append(buckets, target)
		}
		before := len(costs)
		if first.Apart() {
			costs = append(costs, first.Costs...)
		} else {
			for n := range g {
				costs = append(costs, g[n].Cost)
			}
		}
		calls[i] = algorithms.Decide{Fence: algorithms.Fence{Epoch: first.Rules.Epoch},
			Commit: first.Commit, Once: first.Once,
			Buckets: buckets[len(buckets)-len(first.Applied):], Costs: costs[before:],
			PerBucket: first.Apart(), Parts: partsOf(g)}
		work += int64(len(first.Applied)) * int64(scriptWork+(len(g)-1)*joinWork)
	}
	return calls, work
}

// partsOf returns the parts of the requests of a group, nil if all may use all.
func partsOf(group []Ask) (all []quantity.PPM) {
	if allWhole(group) {
		return nil
	}
	for n := range group {
		for i := range group[n].Applied {
			all = append(all, group[n].PortionOf(i))
		}
	}
	return all
}

// allWhole reports whether all requests of a group may use all of their limits' rights.
func allWhole(group []Ask) bool {
	for n := range group {
		if group[n].Portions != nil {
			return false
		}
	}
	return true
}

func shardOf(c algorithms.Decide) store.Shard { return store.ShardOf(c.Buckets[0].Key) }

// send counts work as under way. It returns whether no other is, and the present time.
func (b *batcher) send(work int64) (alone bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	alone = b.sent == 0
	b.sent += work
	return alone, b.on.Now()
}

// end counts work as no longer under way. If timed is true, it measures the store's pace by the
// round trip.
func (b *batcher) end(work int64, alone, timed bool, begun, back time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent -= work
	if timed {
		b.pace.done(begun, back, work, alone)
	}
}

// unreached returns the error for a call that the server left without an answer. If the call is
// late but the server answered others, the server is busy: the error is an *Overload, and the
// breaker of the shard stays as it is. Otherwise the breaker trips.
func (b *batcher) unreached(shard store.Shard, sent, now time.Time, err error) error {
	due := sent.Add(b.pace.deadline)
	if store.Late(err) && b.breakers.answers(shard, sent, due, now, b.pace.deadline, b.wakes.starved(now, b.pace.deadline)) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.refused.Late++
		return b.overload()
	}
	b.breakers.trip(shard)
	return err
}

// withinReach answers the requests that had queued when the breaker of their shard tripped, and
// returns the others. A call to a server that does not answer would delay the calls to other
// servers.
func (b *batcher) withinReach(batch []Ask) []Ask {
	within := batch[:0]
	for _, w := range batch {
		if b.breakers.tripped(store.ShardOf(w.Applied[0].Target.Key)) {
			w.answer <- Answer{Err: errOutOfReach}
			continue
		}
		within = append(within, w)
	}
	return within
}
