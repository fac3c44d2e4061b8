package admit

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/decide/local"
	"github.com/quotad/quotad/region/decide/prefetch"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/rights"
)

// Config holds what a limiter consists of.
type Config struct {
	Region, Node string
	Nodes        int            // the region's number of nodes by configuration, at least 1
	On           queue.Executor // nil: this process's clock and goroutines
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
	queue    *queue.Queue
	deadline time.Duration // of the store's answer
	wait     time.Duration // of a request whose caller names no time
	elapsed  func() time.Duration
	local    *local.Part
	chunks   *prefetch.Chunks
	metrics  *metrics
	accounts accounts
	// unmatched is for requests to which no limit applies.
	unmatched unmatched
	sequence  atomic.Uint64
	receipts  *receipts.Receipts
}

// clockOf returns the clock by which units that are held end.
func clockOf(c Config) *held.Clock {
	if c.Elapsed == nil {
		return held.NewClock()
	}
	begun := c.Now().Round(0)
	return held.ClockOf(func() (monotonic, wall time.Duration) { return c.Elapsed(), c.Now().Round(0).Sub(begun) })
}

// DefaultWait is how long a request waits for its turn whose caller names no time.
const DefaultWait = time.Second

// ErrClosed is the error of requests to a node that has been closed.
var ErrClosed = tenure.ErrClosed

// New returns a limiter. It decides requests, but queued requests wait until Run is called.
func New(c Config) *Limiter {
	if c.On == nil {
		c.On = &queue.Goroutines{}
	}
	l := &Limiter{config: c, log: c.Log, store: c.Store, tenure: c.Tenure, rights: c.Rights,
		deadline: c.Store.Deadline(), wait: cmp.Or(c.Wait, DefaultWait), metrics: newMetrics()}
	l.elapsed = clockOf(c).Elapsed
	l.accounts.metrics, l.accounts.now = l.metrics, c.Now
	l.unmatched = unmatched{log: c.Log, elapsed: l.elapsed, count: l.metrics.noLimit}
	l.local = local.New(local.Config{Node: c.Node, Nodes: c.Nodes, Store: c.Store, Tenure: c.Tenure, Rights: c.Rights,
		Journal: c.Journal, Writes: c.Store.Timeout(), Now: c.Now, Log: c.Log})
	l.queue = queue.New(queue.Config{Store: c.Store, Rights: c.Rights, Now: c.Now, Elapsed: l.elapsed, Log: c.Log,
		Closed: c.Closed, On: c.On})
	l.chunks = prefetch.New(prefetch.Config{Nodes: c.Nodes, Store: c.Store, Terms: c.Tenure, Rights: c.Rights, Queue: l.queue,
		Elapsed: l.elapsed, On: c.On})
	l.receipts = receipts.New(receipts.Config{Region: c.Region, Store: c.Store, Rules: c.Tenure.Rules, Rights: c.Rights,
		Journal: c.Journal, Charged: l.accounts.beyond, Log: c.Log})
	return l
}

// Run serves queued requests, and probes the servers that did not answer, until ctx ends.
func (l *Limiter) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { l.queue.Run(ctx) })
	all.Go(func() { l.chunks.Run(ctx) })
	all.Go(func() { l.local.Watch(ctx) })
	all.Wait()
}

// Changed takes a change of the terms on which the store may be used. After a new generation began,
// what this node admitted without the store is charged there once more.
func (l *Limiter) Changed(c tenure.Change) {
	l.receipts.Opened()
	if c.Anew {
		l.local.BookAnew()
	}
}

// Collectors returns the metrics that are counted as decisions are made.
func (l *Limiter) Collectors() []prometheus.Collector {
	return slices.Concat(l.metrics.all, l.local.Collectors(), l.receipts.Collectors(), l.chunks.Collectors())
}

// Forget drops what was spent in windows that no longer count at a time, and what was counted long
// before it.
func (l *Limiter) Forget(now time.Time) {
	l.local.Forget(now)
	l.tenure.Rules().Recount(now)
	l.accounts.fullest.turn()
}

// Local returns this node's part of limits that it admits from without the store.
func (l *Limiter) Local() *local.Part { return l.local }

// Chunks returns what the node holds to admit from without its store.
func (l *Limiter) Chunks() *prefetch.Chunks { return l.chunks }

// Receipts returns what gives receipts, and gives back.
func (l *Limiter) Receipts() *receipts.Receipts { return l.receipts }

// Queue returns what asks the store.
func (l *Limiter) Queue() *queue.Queue { return l.queue }
