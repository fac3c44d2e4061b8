package prefetch

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
)

const (
	// maxHolders bounds the buckets of which the node holds chunks at a time. All further buckets
	// are exact.
	maxHolders = 4096
	// maxWanted bounds the chunks that are asked for at a time. Beyond it, requests ask the store
	// until one of them finds a place for its bucket.
	maxWanted = 256
	// sweepEvery is how often the node looks for chunks that are over.
	sweepEvery = 100 * time.Millisecond
	// returnEvery is how often the node does so when it ends.
	returnEvery = 5 * time.Millisecond
	// maxReturned bounds the chunks that go back in one round trip. At some 30 us each, a decision
	// behind it waits a millisecond or two.
	maxReturned = 64
)

// Chunks are the buckets of which a node holds chunks, or asks for one. Safe for concurrent use.
type Chunks struct {
	nodes    int
	store    *store.Store
	terms    Terms
	rights   Rights
	queue    *queue.Queue
	deadline time.Duration // of the store's answer
	elapsed  func() time.Duration
	on       queue.Executor
	wanted   atomic.Int32 // chunks that are asked for

	// units of chunks: asked for, spent, given back, and charged though nobody can spend them
	prefetchedUnits, spentUnits, returnedUnits, strandedUnits prometheus.Counter

	mu      sync.Mutex
	holders map[*rules.Applied]*rules.Rules
	ended   bool // there are to be none any more

	holds chan struct{} // holds a value after there was one more
}

// Config holds what chunks are asked for and given back with.
type Config struct {
	Nodes   int // the region's number of nodes by configuration
	Store   *store.Store
	Terms   Terms
	Rights  Rights
	Queue   *queue.Queue
	Elapsed func() time.Duration // the time since any one moment, by a clock that is never set
	On      queue.Executor       // what asks for them runs on
}

// Terms says on what terms the store is used (tenure.Tenure).
type Terms interface {
	Rules() *rules.Rules
	Generation() uint64
	// Stopped returns why the node has stopped using its store; nil: it has not.
	Stopped() *tenure.Stopped
}

// Rights knows until when buckets exist, and has those restored that the store lost.
type Rights interface {
	// Exists returns until when a bucket exists, as far as this node knows.
	Exists(b *exchange.Bucket) quantity.StoreTime
	// Lose takes a store's error about a bucket. It reports whether the bucket is lost, and is
	// restored.
	Lose(ctx context.Context, b *exchange.Bucket, err error) bool
}

// New returns what a node holds, which is nothing.
func New(c Config) *Chunks {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &Chunks{nodes: c.Nodes, store: c.Store, terms: c.Terms, rights: c.Rights, queue: c.Queue, deadline: c.Store.Deadline(),
		elapsed: c.Elapsed, on: c.On, holders: map[*rules.Applied]*rules.Rules{}, holds: make(chan struct{}, 1),
		prefetchedUnits: counter("quotad_prefetched_units_total", "Units that the store was charged with for requests to come (consistency: prefetch)."),
		spentUnits:      counter("quotad_prefetched_spent_units_total", "Prefetched units that requests were admitted from, without asking the store."),
		returnedUnits:   counter("quotad_prefetched_returned_units_total", "Prefetched units that were given back to the store."),
		strandedUnits: counter("quotad_prefetched_stranded_units_total",
			"Prefetched units that were neither spent nor given back: they count as used until their window is over.")}
}

// Collectors returns the metrics that are counted as units are held and spent.
func (c *Chunks) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.prefetchedUnits, c.spentUnits, c.returnedUnits, c.strandedUnits}
}

// Run gives back chunks that are over, until ctx ends.
func (c *Chunks) Run(ctx context.Context) {
	repeat.While(ctx, c.holds, sweepEvery, func() bool { return !c.none() }, func() { c.ReturnOver(ctx, false) })
}

// wanted is a chunk to be asked for.
type wanted struct {
	rules *rules.Rules
	of    *rules.Applied
	units quantity.Units
}

// hold notes that the node may hold a chunk of a bucket. It reports whether it may.
func (c *Chunks) hold(r *rules.Rules, a *rules.Applied) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.holders[a]; c.ended || !known && len(c.holders) >= maxHolders {
		return false
	}
	c.holders[a] = r
	repeat.Signal(c.holds)
	return true
}

// end has the node hold no more chunks.
func (c *Chunks) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// none reports whether the node holds no chunk, and asks for none.
func (c *Chunks) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.holders) == 0
}

// over returns the chunks that are over at a time, those under other rules than the present ones,
// and with all every chunk.
func (c *Chunks) over(present *rules.Rules, now time.Duration, all bool) (over []leftover) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a, r := range c.holders {
		chunk, holds := a.Held.Over(now, all || r != present)
		if !holds {
			delete(c.holders, a)
		}
		if chunk != nil {
			over = append(over, leftover{a, chunk, chunk.End()})
		}
	}
	slices.SortFunc(over, func(a, b leftover) int {
		return strings.Compare(a.of.Bucket.ID, b.of.Bucket.ID)
	})
	return over
}

// Spendable reports whether chunks can admit a request with these limits. They cannot with a limit
// that is exact.
func Spendable(applied []*rules.Applied) bool {
	if len(applied) == 0 || len(applied) > MaxSpent {
		return false
	}
	for _, a := range applied {
		if a.Limit.Consistency != policy.Prefetch {
			return false
		}
	}
	return true
}

// Payment says from what chunk of a request's buckets it was admitted: of those, the one with the
// least left.
type Payment struct {
	Of        *rules.Applied
	Chunk     *held.Chunk
	Remaining quantity.Units // of the bucket, as far as this node knows
	At        time.Duration  // when it was admitted, by Config.Elapsed; before the Chunk was over
}

// Spend admits a request whose limits are spendable from the chunks that the node holds, if it
// holds enough of all its buckets.
func (c *Chunks) Spend(r *rules.Rules, applied []*rules.Applied, cost quantity.Units) (least Payment, paid bool) {
	if c.queue.Closed() || c.terms.Stopped() != nil || r.Serves() != nil {
		return Payment{}, false
	}
	var taken [MaxSpent]*held.Chunk
	generation, now := c.terms.Generation(), c.elapsed()
	for i, a := range applied {
		chunk, left, low := a.Held.Take(cost, generation, now)
		if chunk == nil {
			c.putBack(taken[:i], cost)
			return Payment{}, false
		}
		taken[i] = chunk
		if remaining := left + chunk.State.Free; i == 0 || remaining < least.Remaining {
			least = Payment{a, chunk, remaining, now}
		}
		if low {
			c.topUp(r, a)
		}
	}
	c.spentUnits.Add(float64(cost) * float64(len(applied)))
	return least, true
}

// MaxSpent is the most limits that a request has which is admitted from chunks: all that may apply
// to one.
const MaxSpent = algorithms.MaxLoad

// putBack undoes what was taken of chunks for a request.
func (c *Chunks) putBack(taken []*held.Chunk, cost quantity.Units) {
	for _, chunk := range taken {
		// Units of a chunk that ended in this moment stay charged.
		c.strandedUnits.Add(float64(chunk.PutBack(cost)))
	}
}

// TopUp asks for chunks of all buckets of a request that chunks could have admitted, after the
// store decided it.
func (c *Chunks) TopUp(w *queue.Ask) {
	for _, a := range w.Applied {
		c.topUp(w.Rules, a)
	}
}

// topUp asks for a chunk of a bucket, if the node uses enough of it. It does not wait.
func (c *Chunks) topUp(r *rules.Rules, a *rules.Applied) {
	units := a.Held.Want(c.nodes, c.elapsed())
	if units == 0 {
		return
	}
	if !c.hold(r, a) {
		a.Held.Filled(nil)
		return
	}
	if c.wanted.Add(1) > maxWanted {
		c.wanted.Add(-1)
		a.Held.Filled(nil)
		return
	}
	c.on.Go(func() {
		defer c.wanted.Add(-1)
		c.fetch(context.Background(), wanted{r, a, units})
	})
}

// fetch asks the store for a chunk, unless there is to be none any more.
func (c *Chunks) fetch(ctx context.Context, w wanted) {
	if !c.hold(w.rules, w.of) {
		w.of.Held.Filled(nil)
		return
	}
	asks := queue.Ask{Rules: w.rules, Applied: []*rules.Applied{w.of}, Cost: w.units, Commit: true,
		Chunk: true}.Waits(c.on.Now(), c.deadline)
	said, err := c.queue.Decide(ctx, asks)
	if err != nil || !said.Admitted() {
		w.of.Held.Filled(nil)
		return
	}
	c.prefetchedUnits.Add(float64(w.units))
	answer := said.Learned(asks)
	if old := w.of.Held.Filled(&held.Grant{Units: w.units, Answer: answer}); old != nil {
		c.giveBack(ctx, []leftover{{w.of, old, old.End()}})
	}
}

// ReturnOver gives back what is left of the chunks that are over, or with all of every chunk.
func (c *Chunks) ReturnOver(ctx context.Context, all bool) {
	c.giveBack(ctx, c.over(c.terms.Rules(), c.elapsed(), all))
}

// ReturnAll gives every chunk back, before the node ends. From then on the node holds none. It
// waits for chunks that it has asked for, until ctx ends, and not longer than for an answer of the
// store.
func (c *Chunks) ReturnAll(ctx context.Context) {
	c.end()
	for end := c.on.Now().Add(c.deadline + returnEvery); ; c.on.Sleep(returnEvery) {
		c.ReturnOver(ctx, true)
		if c.none() || ctx.Err() != nil || c.on.Now().After(end) {
			return
		}
	}
}

// leftover is what was left of a chunk.
type leftover struct {
	of    *rules.Applied
	chunk *held.Chunk
	units quantity.Units
}

// giveBack gives units back to the store, in the cell and under the generation that they were
// charged to. It asks once: what the store does not take stays charged until its cell no longer
// counts.
func (c *Chunks) giveBack(ctx context.Context, all []leftover) {
	current := c.terms.Rules()
	for piece := range slices.Chunk(all, maxReturned) {
		c.givePiece(ctx, current, piece)
	}
}

func (c *Chunks) givePiece(ctx context.Context, current *rules.Rules, all []leftover) {
	calls, of := make([]algorithms.Settle, 0, len(all)), make([]leftover, 0, len(all))
	for _, left := range all {
		b := current.Find(left.of.Bucket.ID)
		if left.units == 0 {
			continue
		}
		if b == nil || left.chunk.Generation != c.terms.Generation() {
			c.strandedUnits.Add(float64(left.units))
			continue
		}
		target := current.Target(b, c.rights.Exists(b))
		calls, of = append(calls, algorithms.Settle{
			Fence: algorithms.Fence{Epoch: current.Epoch, Generation: left.chunk.Generation},
			Once:  store.OnceKey(store.ShardOf(target.Key), "none"),
			At:    left.chunk.Now, Cost: left.units,
			Charges: []algorithms.Charge{{Target: target, Cell: left.chunk.State.Cell}}}),
			append(of, left)
	}
	if len(calls) == 0 {
		return
	}
	for i, r := range c.store.Settles(ctx, calls) {
		var back quantity.Units
		if r.Err == nil {
			back = r.Value.Charges[0].Back
			current.ForgetDenials(of[i].of.Bucket.ID, r.Value.Now)
		} else {
			c.rights.Lose(ctx, of[i].of.Bucket, r.Err)
		}
		c.returnedUnits.Add(float64(back))
		c.strandedUnits.Add(float64(of[i].units - back))
	}
}
