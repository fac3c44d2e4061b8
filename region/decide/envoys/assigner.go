package envoys

import (
	"context"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/assign"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/tenure"
)

const (
	// tickEvery is how often the machine is stepped. If it has work that should not wait, it is
	// stepped sooner: soonest after the last step at the earliest, and for a fifth of the time at
	// most.
	tickEvery = 200 * time.Millisecond
	soonest   = 5 * time.Millisecond
	stepPart  = 4
	// MaxStreams bounds the streams of a node. Further ones are refused.
	MaxStreams = 10_000
)

// Rules returns the rules of the documents in force.
type Rules interface{ Rules() *rules.Rules }

// Rights moves rights in the region's store.
type Rights interface {
	// Assign runs calls on buckets, one for each. What the store did not answer has
	// StatusUnknown.
	Assign(ctx context.Context, buckets []*exchange.Bucket,
		calls []algorithms.Assign) []algorithms.Assigned
	// ObserveEnvoys tells what Envoys admit and deny of a bucket.
	ObserveEnvoys(b *exchange.Bucket, admitted, denied quantity.MilliRate)
	// Allotments returns the most rights that this node may assign of some buckets, by bucket id:
	// others need the rest.
	Allotments() map[string]quantity.Units
	Exists(b *exchange.Bucket) quantity.StoreTime
}

// Limiter charges buckets.
type Limiter interface {
	// Charge charges units to a bucket, all or none, and reports whether it did.
	Charge(ctx context.Context, r *rules.Rules, a *rules.Applied, units quantity.Units) bool
}

// Config is what an assigner consists of.
type Config struct {
	Node    string
	Nodes   int // the region's number of nodes by configuration
	Rules   Rules
	Rights  Rights
	Limiter Limiter
	Now     func() time.Time // the node's wall clock
	// Elapsed returns the time since any one moment by a clock that is never set. nil: this
	// process's.
	Elapsed func() time.Duration
}

// Assigner assigns parts of limits to Envoys. Safe for concurrent use.
type Assigner struct {
	config Config
	wake   chan struct{}
	mover  mover
	counts *counts

	mu        sync.Mutex
	machine   *assign.Machine
	streams   map[assign.Stream]*Stream
	newcomers newcomers
	last      assign.Stream
	idBytes   int // of the keys of all streams' ids
	drained   bool
}

// New returns an assigner that does nothing before Run.
func New(c Config) *Assigner {
	if c.Elapsed == nil {
		begun := time.Now()
		c.Elapsed = func() time.Duration { return time.Since(begun) }
	}
	return &Assigner{config: c, wake: make(chan struct{}, 1),
		mover: newMover(), counts: newCounts(),
		machine: assign.New(c.Nodes), streams: map[assign.Stream]*Stream{}}
}

// now returns the machine's time.
func (a *Assigner) now() quantity.NodeTime {
	return quantity.NodeTime(a.config.Elapsed().Microseconds() + 1)
}

// Run steps the machine until ctx ends, and waits for the work under way.
func (a *Assigner) Run(ctx context.Context) {
	var moving sync.WaitGroup
	for range movers {
		moving.Go(func() { a.move(ctx) })
	}
	defer moving.Wait()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	turn := time.NewTimer(0) // of new ids
	defer turn.Stop()
	took := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-turn.C:
		case <-a.wake:
			time.Sleep(max(soonest, stepPart*took)) // what comes together is planned together
		}
		begun := time.Now()
		a.mover.add(a.Step())
		took = time.Since(begun)
		if in, wait := a.nextTurn(); wait {
			turn.Reset(in)
		}
	}
}

// nextTurn returns when further new ids may be taken, if some wait.
func (a *Assigner) nextTurn() (in time.Duration, wait bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(a.newcomers.taken+newEvery-a.config.Elapsed(), soonest), a.newcomers.waiting > 0
}

// soon makes Run step the machine soon.
func (a *Assigner) soon() { repeat.Signal(a.wake) }

// Step steps the machine once, and returns what it asks of the store. Run calls it.
func (a *Assigner) Step() assign.Effects {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.takeNew()
	now := a.now()
	a.machine.Allot(now, a.config.Rights.Allotments())
	out := a.machine.Tick(now, quantity.StoreTime(a.config.Now().UnixMicro()))
	for _, s := range out.Sends {
		if to := a.streams[s.Stream]; to != nil {
			to.queue(s)
		}
	}
	for _, d := range out.Demands {
		a.tellDemand(d)
	}
	return out
}

// CarryOut carries out in the store what the machine asks of it, one after the other, for callers
// that step it by hand.
func (a *Assigner) CarryOut(ctx context.Context, all assign.Effects) {
	a.hold(ctx, all.Holds)
	for _, c := range all.Charges {
		a.charge(ctx, c)
	}
}

// tellDemand tells the exchange of rights what Envoys wanted. The caller holds the lock.
func (a *Assigner) tellDemand(d assign.Demand) {
	if b := a.config.Rules.Rules().Lookup(d.Bucket); b != nil {
		a.config.Rights.ObserveEnvoys(b.Bucket, d.Admitted, d.Denied)
	}
}

// hold carries out Holds in the store, and reports whether it answered any.
func (a *Assigner) hold(ctx context.Context, holds []assign.Hold) (answered bool) {
	current := a.config.Rules.Rules()
	var known []assign.Hold
	var buckets []*exchange.Bucket
	var calls []algorithms.Assign
	for _, h := range holds {
		b := current.Lookup(h.Bucket)
		if b == nil || b.Limit.Assign == nil || current.Serves() != nil && h.Held > h.Known {
			a.held(assign.Held{Bucket: h.Bucket, Cell: h.Cell, Failed: true})
			continue
		}
		known, buckets = append(known, h), append(buckets, b.Bucket)
		calls = append(calls, algorithms.Assign{Fence: algorithms.Fence{Epoch: current.Epoch},
			Target: current.Target(b.Bucket, a.config.Rights.Exists(b.Bucket)),
			Holder: a.config.Node, Cell: h.Cell, Known: h.Known, Held: h.Held, Returned: h.Returned,
			Kept: h.Kept})
	}
	asked := a.now()
	answered = len(calls) == 0
	for i, answer := range a.config.Rights.Assign(ctx, buckets, calls) {
		answered = answered || answer.Status != algorithms.StatusUnknown
		crowded := answer.Status == algorithms.StatusCrowded // the node holds nothing, and is told so
		if crowded {
			a.counts.crowded.Inc()
		}
		a.held(assign.Held{Bucket: known[i].Bucket, Cell: known[i].Cell,
			Failed: answer.Status != algorithms.StatusOK && !crowded, Asked: asked, At: answer.Now,
			Lost: answer.Held < known[i].Known,
			Held: answer.Held, Returned: answer.Returned})
	}
	return answered
}

// held tells the machine what the store answered.
func (a *Assigner) held(h assign.Held) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.machine.Held(a.now(), h)
}

// charge carries out a Charge in the store.
func (a *Assigner) charge(ctx context.Context, c assign.Charge) {
	current := a.config.Rules.Rules()
	b := current.Lookup(c.Bucket)
	a.charged(c, b != nil && a.config.Limiter.Charge(ctx, current, b, c.Units))
}

func (a *Assigner) charged(c assign.Charge, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.machine.Charged(a.now(), c, ok)
}

// Changed takes in another tenure. After a loss nothing is known of what the store holds.
func (a *Assigner) Changed(c tenure.Change) {
	if !c.Anew {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mover.drop()
	a.machine.Forget(a.now())
}

// Drain shortens all assignments so that Envoys move to other nodes before this one ends. It gives
// nothing back: what is held ends with its cells. Call it before the node ends. Only the first call
// does something.
func (a *Assigner) Drain() {
	a.mu.Lock()
	before := a.drained
	a.drained = true
	if !before {
		a.machine.Drain(a.now())
	}
	a.mu.Unlock()
	if !before {
		a.mover.add(a.Step())
	}
}

// Stats returns what the assigner has done.
func (a *Assigner) Stats() assign.Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.machine.Stats(a.now())
}

// View returns what the node holds of a bucket for Envoys, and at most so many of them.
func (a *Assigner) View(bucket string, most int) (assign.View, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.machine.View(a.now(), bucket, most)
}

// bucketOf returns what the machine must know of a bucket.
func bucketOf(b *rules.Applied) *assign.Bucket {
	return &assign.Bucket{ID: b.Bucket.ID, Store: b.Store(),
		Window: b.Bucket.Window, Cells: b.Bucket.Cells(),
		Counted:     b.Bucket.Kind == algorithms.FixedWindow,
		TTL:         int64(b.Limit.Assign.TTL / time.Second),
		Entitlement: b.Target.Terms.Entitlement, Burst: b.EnvoyBurst}
}
