package region

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/region/decide/admit"
)

// metrics are the numbers of a node that are counted as things happen. Those about decisions are in
// package admit. Numbers that are read at each scrape are readings.
type metrics struct {
	registry *prometheus.Registry
	panics   *prometheus.CounterVec
	commits  prometheus.Histogram
}

func newMetrics(n *Node) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_recovered_panics_total",
			Help: "Panics that the node recovered from, by place: each is a fault of quotad."},
			[]string{"where"}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "quotad_journal_commit_seconds",
			Help:    "Time of each commit of the journal, which is that of its fsync.",
			Buckets: commitBuckets, NativeHistogramBucketFactor: admit.NativeFactor,
			NativeHistogramMaxBucketNumber: admit.NativeBuckets})}
	m.registry.MustRegister(m.panics, m.commits)
	n.config.Journal.Watch(func(took time.Duration) { m.commits.Observe(took.Seconds()) })
	m.registry.MustRegister(n.limiter.Collectors()...)
	m.registry.MustRegister(n.envoys.Collectors()...)
	return m
}

// commitBuckets are the bounds of the histogram of commits, in seconds. A good disk takes some 0.1
// to 5 ms.
var commitBuckets = []float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .1, .5, 2}

// CountPanic counts a panic that was recovered from. There are few values of where, and no caller
// chooses one.
func (n *Node) CountPanic(where string) { n.metrics.panics.WithLabelValues(where).Inc() }

// Metrics returns the registry of the node's metrics.
func (n *Node) Metrics() *prometheus.Registry { return n.metrics.registry }

// watch registers the metrics that are read from the node at each scrape.
func (m *metrics) watch(n *Node) { m.registry.MustRegister(newNodeCollector(n), limitCollector{n}) }

// Counter is a running total since the node's start.
type Counter struct {
	Name  string
	Value int64
}

// Counters returns the totals of the exchange of rights, in a fixed order.
func (s Status) Counters() []Counter {
	x := s.Exchange
	return []Counter{
		{"asks", x.Asks}, {"asks_refused", x.AsksRefused}, {"asks_dropped", x.Dropped},
		{"asks_declined", x.Refusals},
		{"calls_unanswered", x.Unanswered}, {"units_borrowed", int64(x.Borrowed)},
		{"units_regained", int64(x.Regained)},
		{"units_lent", int64(x.Lent)}, {"units_returned", int64(x.Returned)},
		{"hints_published", x.HintsPublished},
		{"messages_implausible", x.Implausible}, {"events_dropped", s.Dropped},
		{"hints_dropped", s.HintsLost},
	}
}
