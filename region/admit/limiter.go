package admit

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/region/journal"
	"github.com/quotad/quotad/region/rights"
	"github.com/quotad/quotad/region/store"
	"github.com/quotad/quotad/region/tenure"
)

// Config is all a limiter is made of.
type Config struct {
	Region, Node string
	Nodes        int   // how many the region has, by configuration; at least 1
	Repeats      int64 // how often a request is answered that is sent again by its id; 0: algorithms.DefaultRepeats
	// Stepped says that whoever asks the store makes the round trip itself, and that nothing else runs: for whoever steps a
	// node by hand.
	Stepped bool
	Store   *store.Store
	Journal *journal.Journal
	Tenure  *tenure.Tenure
	Rights  *rights.Engine
	Now     func() time.Time // the node's wall clock
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
	deadline time.Duration // of a decision, what it waits for rights apart
	batcher  *batcher
	breakers breakers
	fallback *fallback
	metrics  *metrics
	sequence atomic.Uint64
	receipts atomic.Uint64
	life     string // random; tells this start of the node from all others
}

// ErrClosed says that the node has been closed.
var ErrClosed = tenure.ErrClosed

// New returns a limiter that decides, but carries nothing that queues before Run.
func New(c Config) *Limiter {
	l := &Limiter{config: c, log: c.Log, store: c.Store, tenure: c.Tenure, rights: c.Rights, deadline: c.Store.Deadline(),
		breakers: newBreakers(c.Store.Shards()), metrics: newMetrics(), life: rand.Text()}
	writes := l.deadline // that long a claim may take
	if c.Stepped {
		writes = time.Hour // a simulated journal is not late by the wall clock
	}
	l.fallback = newFallback(max(c.Nodes, 1), newClaims(c.Journal, c.Now, writes, c.Log).claim)
	l.batcher = newBatcher(c.Store, c.Rights, l.breakers, queueLength, l.deadline)
	l.batcher.repeats = c.Repeats
	if c.Stepped {
		l.batcher.trips, l.batcher.stepped = 0, true
	}
	return l
}

// Run carries what queues, and lets requests through again to servers that did not answer, until ctx ends.
func (l *Limiter) Run(ctx context.Context) {
	var all sync.WaitGroup
	for range underWay {
		all.Go(func() { l.batcher.run(ctx) })
	}
	all.Go(func() { l.probe(ctx) })
	all.Go(func() { l.batcher.wakes.watch(ctx, l.deadline) })
	all.Go(func() { l.watchFallback(ctx) })
	all.Wait()
}

// Changed takes in that the store may be used on other terms.
func (l *Limiter) Changed(c tenure.Change) {
	if c.Anew {
		l.fallback.settleAnew()
	}
}

// Collectors returns the numbers that are counted as things happen.
func (l *Limiter) Collectors() []prometheus.Collector { return l.metrics.all() }

// Forget drops what no longer weighs at a time.
func (l *Limiter) Forget(now time.Time) { l.fallback.forget(now) }

// Local returns what this node admitted without the store.
func (l *Limiter) Local() LocalStatus { return l.fallback.status() }

// OutOfReach returns, of each shard, whether its requests are decided without the store, because its server does not answer.
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
