package admit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/rights"
)

// Config holds what a limiter consists of.
type Config struct {
	Region, Node string
	Nodes        int // the region's number of nodes by configuration, at least 1
	// Stepped says that the caller that asks the store makes the round trip itself and that no
	// goroutine runs. It is for tests and simulators that step a node.
	Stepped bool
	// Wait is how long a request waits for its turn whose caller names no time. 0: DefaultWait.
	Wait    time.Duration
	Store   *store.Store
	Journal *journal.Journal
	Tenure  *tenure.Tenure
	Rights  *rights.Engine
	Now     func() time.Time // the node's wall clock
	// Elapsed returns the time since any one moment by a clock that is never set. nil: this
	// process's.
	Elapsed func() time.Duration
	Log     *slog.Logger
	Closed  <-chan struct{} // closed when the node ends
}

// Limiter decides requests. Safe for concurrent use.
type Limiter struct {
	config   Config
	log      *slog.Logger
	store    *store.Store
	tenure   *tenure.Tenure
	rights   *rights.Engine
	deadline time.Duration // of the store's answer
	wait     time.Duration // of a request whose caller names no time
	elapsed  func() time.Duration
	lanes    *lanes
	tickets  tickets
	breakers breakers
	fallback *fallback
	chunks   *chunks
	metrics  *metrics
	fullest  fullest
	closures closures
	// unmatched is for requests to which no limit applies.
	unmatched unmatched
	sequence  atomic.Uint64
	receipts  atomic.Uint64
	// life is random and tells this start of the node from all others.
	life string
}

// clockOf returns the clock by which units that are held end.
func clockOf(c Config) *held.Clock {
	if c.Elapsed == nil {
		return held.NewClock()
	}
	begun := c.Now().Round(0)
	return held.ClockOf(func() (monotonic, wall time.Duration) { return c.Elapsed(), c.Now().Round(0).Sub(begun) })
}

// ErrClosed is the error of requests to a node that has been closed.
var ErrClosed = tenure.ErrClosed

// New returns a limiter. It decides requests, but queued requests wait until Run is called.
func New(c Config) *Limiter {
	l := &Limiter{config: c, log: c.Log, store: c.Store, tenure: c.Tenure, rights: c.Rights,
		deadline: c.Store.Deadline(), wait: cmp.Or(c.Wait, DefaultWait),
		breakers: newBreakers(c.Store.Shards()), metrics: newMetrics(), chunks: newChunks(), life: rand.Text()}
	l.elapsed = clockOf(c).Elapsed
	// writes is how long writing a claim may take.
	writes := l.deadline
	if c.Stepped {
		writes = time.Hour // the wall clock does not measure a simulated journal
	}
	l.fallback = newFallback(max(c.Nodes, 1), newClaims(c.Journal, c.Now, writes, c.Log))
	l.lanes = newLanes(shared{store: c.Store, rights: c.Rights, breakers: l.breakers,
		wakes: newWakes(), elapsed: l.elapsed, stepped: c.Stepped}, l.deadline)
	return l
}

// Run serves queued requests, and probes the servers that did not answer, until ctx ends.
func (l *Limiter) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { l.lanes.run(ctx) })
	for range fetchers {
		all.Go(func() { l.fetchChunks(ctx) })
	}
	all.Go(func() { l.sweep(ctx) })
	all.Go(func() { l.probe(ctx) })
	all.Go(func() { l.lanes.wakes.watch(ctx, l.deadline) })
	all.Go(func() { l.watchFallback(ctx) })
	all.Wait()
}

// Changed takes a change of the terms on which the store may be used. After a new generation began,
// what this node admitted without the store is charged there once more.
func (l *Limiter) Changed(c tenure.Change) {
	if c.Anew {
		l.fallback.settleAnew()
	}
}

// Collectors returns the metrics that are counted as decisions are made.
func (l *Limiter) Collectors() []prometheus.Collector { return l.metrics.all }

// Forget drops what was spent in windows that no longer count at a time, and what was counted long
// before it.
func (l *Limiter) Forget(now time.Time) {
	l.fallback.forget(now)
	l.tenure.Rules().Recount(now)
	l.fullest.turn()
}

// Local returns what this node admitted without the store.
func (l *Limiter) Local() LocalStatus { return l.fallback.status() }

// OutOfReach returns for each shard whether its requests are decided without the store, because the
// server does not answer.
func (l *Limiter) OutOfReach() map[store.Shard]bool {
	all := make(map[store.Shard]bool, len(l.breakers))
	for shard, b := range l.breakers {
		all[shard] = b.Load()
	}
	return all
}

func isClosed(closed <-chan struct{}) bool {
	select {
	case <-closed:
		return true
	default:
		return false
	}
}

var errLate = errors.New("the store does not answer in time")
