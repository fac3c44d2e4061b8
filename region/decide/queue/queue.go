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
	// Stepped says that the caller that asks makes the round trip itself, with all that waits, and
	// that no goroutine runs. It is for tests and simulators that step a node.
	Stepped bool
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
	deadline time.Duration // of the store's answer
	closed   <-chan struct{}
	lanes    *lanes
	tickets  tickets
	breakers breakers
	undone   atomic.Uint64 // charges of parts that were taken back
	life     string        // random: tells them from those of all other nodes, and of earlier lives
}

// New returns a queue. Requests wait in it until Run is called.
func New(c Config) *Queue {
	q := &Queue{store: c.Store, log: c.Log, now: c.Now, deadline: c.Store.Deadline(), closed: c.Closed,
		breakers: newBreakers(c.Store.Shards()), life: rand.Text()}
	q.lanes = newLanes(shared{store: c.Store, rights: c.Rights, breakers: q.breakers,
		wakes: newWakes(), elapsed: c.Elapsed, stepped: c.Stepped}, q.deadline)
	return q
}

// Run carries what waits to the store, and probes the servers that did not answer, until ctx ends.
func (q *Queue) Run(ctx context.Context) {
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
