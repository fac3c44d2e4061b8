package region

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/algorithms"
)

// metrics are the numbers of one node that are counted as things happen; readings are those that are read when somebody
// looks. Labels come from the configuration alone, never from keys of requests.
type metrics struct {
	registry      *prometheus.Registry
	decisions     *prometheus.CounterVec
	resolved      resolved
	time          prometheus.Histogram
	storeFailures prometheus.Counter
	local         prometheus.Counter
	booked        prometheus.Counter
	refunded      *prometheus.CounterVec
	resets        *prometheus.CounterVec
	panics        *prometheus.CounterVec
	repeats       *prometheus.CounterVec
}

// decisionBuckets are the bounds of the histogram of decision times, in seconds: a decision within the region takes some
// 0.2 ms, one that borrows a round trip or more, and the store's deadline is at 50 ms.
var decisionBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .02, .05, .1}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_decisions_total", Help: "Decisions, by the limit that decided and the reason."}, []string{"limit", "reason"}),
		time: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "quotad_decision_seconds", Help: "Time that decisions took inside the node, peeks apart.", Buckets: decisionBuckets}),
		storeFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_store_failures_total", Help: "Requests that the store did not decide."}),
		local: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_local_admitted_units_total", Help: "Units admitted without the store (on_store_failure: local), counted for each limit that they were charged to."}),
		booked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_local_booked_units_total", Help: "Units admitted without the store that it was charged with afterwards, or that no longer counted there; after a loss of the store again."}),
		refunded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_refunded_units_total", Help: "Units given back by refunds, by limit."}, []string{"limit"}),
		resets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_resets_total", Help: "Buckets reset, by limit: each breaks the limit for its window."}, []string{"limit"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_recovered_panics_total", Help: "Panics that the node recovered from, by place: each is a fault of quotad."}, []string{"where"}),
		repeats: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_repeats_total", Help: "Admitted requests sent again by their request_id: answered as the first time and not charged (answered), or sent again too often and decided anew (decided_anew)."}, []string{"outcome"}),
	}
	for _, outcome := range []string{repeatAnswered, repeatDecidedAnew} {
		m.repeats.WithLabelValues(outcome)
	}
	m.resolved.vec = m.decisions
	m.registry.MustRegister(m.decisions, m.time, m.storeFailures, m.local, m.booked, m.refunded, m.resets, m.panics, m.repeats)
	return m
}

const (
	repeatAnswered    = "answered"
	repeatDecidedAnew = "decided_anew"
)

// sentAgain counts a decision of a request that was sent again by its id.
func (m *metrics) sentAgain(d algorithms.Decided) {
	switch {
	case d.Repeated:
		m.repeats.WithLabelValues(repeatAnswered).Inc()
	case d.TooOften:
		m.repeats.WithLabelValues(repeatDecidedAnew).Inc()
	}
}

func (m *metrics) decided(d Decision) { m.resolved.counter(d.Limit, d.Reason).Inc() }

// took notes how long a decision took.
func (m *metrics) took(d time.Duration) { m.time.Observe(d.Seconds()) }

// CountPanic counts a panic that was recovered from. Places are few, and none is chosen by a caller.
func (n *Node) CountPanic(where string) { n.metrics.panics.WithLabelValues(where).Inc() }

// Metrics returns the registry of the node's numbers.
func (n *Node) Metrics() *prometheus.Registry { return n.metrics.registry }

// watch registers the numbers that are read from the node when somebody looks.
func (m *metrics) watch(n *Node) { m.registry.MustRegister(newNodeCollector(n)) }

// resolved finds the counter of a decision without hashing its labels for every one. There are as many as limits have
// reasons to answer with, and soon all of them have been met.
type resolved struct {
	vec *prometheus.CounterVec

	met atomic.Pointer[map[outcome]prometheus.Counter] // never changed, only replaced
	mu  sync.Mutex                                     // held while it is
}

type outcome struct {
	limit  string
	reason Reason
}

func (r *resolved) counter(limit string, reason Reason) prometheus.Counter {
	o := outcome{limit, reason}
	if met := r.met.Load(); met != nil {
		if c := (*met)[o]; c != nil {
			return c
		}
	}
	return r.meet(o)
}

func (r *resolved) meet(o outcome) prometheus.Counter {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.vec.WithLabelValues(o.limit, string(o.reason))
	more := map[outcome]prometheus.Counter{}
	if met := r.met.Load(); met != nil {
		more = maps.Clone(*met)
	}
	more[o] = c
	r.met.Store(&more)
	return c
}

// Counter is a running total since the node's start.
type Counter struct {
	Name  string
	Value int64
}

// Counters returns what the exchange of rights has done, in a fixed order.
func (s Status) Counters() []Counter {
	x := s.Exchange
	return []Counter{
		{"asks", x.Asks}, {"asks_refused", x.AsksRefused}, {"asks_dropped", x.Dropped}, {"asks_declined", x.Refusals},
		{"calls_unanswered", x.Unanswered}, {"units_borrowed", x.UnitsBorrowed}, {"units_regained", x.UnitsRegained},
		{"units_lent", x.UnitsLent}, {"units_returned", x.UnitsReturned}, {"hints_published", x.HintsPublished},
		{"messages_implausible", x.Implausible}, {"events_dropped", s.Dropped}, {"hints_dropped", s.HintsLost},
	}
}
