package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// Config holds what a queue consists of.
type Config struct {
	Store   *store.Store
	Rights  Rights
	Now     func() time.Time     // the node's wall clock
	Elapsed func() time.Duration // the time since any one moment, by a clock that is never set
	Log     *slog.Logger
	Closed  <-chan struct{} // closed when the node ends
	On      Executor        // what it runs on
}

// Rights hears what the store decided, and knows until when buckets exist.
type Rights interface {
	// Observe takes in what the store decided of requests that were to be charged.
	Observe(of []*rules.Applied, call *algorithms.Decide, d algorithms.Decided)
	// ObserveAhead is Observe of requests that are no demand.
	ObserveAhead(of []*rules.Applied, d algorithms.Decided)
	// ExistsFound returns until when a bucket exists, as far as this node knows.
	ExistsFound(a *rules.Applied) quantity.StoreTime
}

// Queue asks the store to decide requests, many with one round trip. Safe for concurrent use.
type Queue struct {
	store    *store.Store
	log      *slog.Logger
	now      func() time.Time
	on       Executor
	deadline time.Duration // of the store's answer
	closed   <-chan struct{}
	lanes    *lanes
	tickets  tickets
	breakers breakers
	undone   atomic.Uint64 // charges of parts that were taken back
	life     string        // random: tells them from those of all other nodes, and of earlier lives
}

// New returns a queue. Requests wait in it until Begin is called.
func New(c Config) *Queue {
	begun := c.On.Now()
	q := &Queue{store: c.Store, log: c.Log, now: c.Now, on: c.On, deadline: c.Store.Deadline(), closed: c.Closed,
		breakers: newBreakers(c.Store.Shards(), begun), life: rand.Text()}
	q.lanes = newLanes(shared{store: c.Store, rights: c.Rights, breakers: q.breakers,
		wakes: newWakes(begun), elapsed: c.Elapsed, on: c.On}, q.deadline)
	return q
}

// Begin has the queue carry what waits to the store. It is called once.
func (q *Queue) Begin() {
	for _, b := range q.lanes.all {
		b.begin()
	}
}

// Run carries what waits to the store, from now on. Until ctx ends it finds out which shards are on
// one server and whether this process gets enough processor time, and probes the servers that did
// not answer.
func (q *Queue) Run(ctx context.Context) {
	q.Begin()
	var all sync.WaitGroup
	all.Go(func() { q.lanes.run(ctx) })
	all.Go(func() { q.probe(ctx) })
	all.Go(func() { q.lanes.wakes.watch(ctx, q.deadline) })
	all.Wait()
}

// Closed reports whether the node has ended, and no request is decided any more.
func (q *Queue) Closed() bool {
	select {
	case <-q.closed:
		return true
	default:
		return false
	}
}

var errLate = errors.New("the store does not answer in time")
