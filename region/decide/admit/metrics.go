package admit

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/quotad/quotad/algorithms"
)

// metrics are the numbers about decisions, counted as they are made. Label values come from the
// configuration alone, never from keys of requests.
type metrics struct {
	all []prometheus.Collector // those below, for a registry

	decisions *prometheus.CounterVec
	resolved  resolved // of decisions
	// units of requests, by limit: admittedUnits have no reason
	admittedUnits, deniedUnits resolved
	// of costs that are known only afterwards, by limit
	debtUnits, lostCharges, refusedCharges resolved
	classUnits                             *prometheus.CounterVec
	unclassed                              resolved
	time                                   prometheus.Histogram
	storeFailures                          prometheus.Counter
	resets                                 *prometheus.CounterVec
	repeats                                *prometheus.CounterVec
	noLimit                                *prometheus.CounterVec
	// denials that were told from memory
	rememberedDenials prometheus.Counter
	// units that clients took, and said that they admitted and denied by themselves
	takenUnits, clientAdmitted, clientDenied prometheus.Counter
}

// decisionBuckets are the bounds of the histogram of decision times, in seconds. A decision within
// the region takes some 0.2 ms, and one that borrows takes a round trip between regions or more.
// The store's deadline is 50 ms.
var decisionBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .02, .05, .1}

// Histograms are native too, for scrapers that ask for it: buckets grow by NativeFactor, and there
// are at most NativeBuckets.
const (
	NativeFactor  = 1.1
	NativeBuckets = 160
)

func newMetrics() *metrics {
	m := &metrics{time: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "quotad_decision_seconds",
		Help:    "Time that decisions took inside the node, peeks apart.",
		Buckets: decisionBuckets, NativeHistogramBucketFactor: NativeFactor,
		NativeHistogramMaxBucketNumber: NativeBuckets})}
	m.all = append(m.all, m.time)
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		m.all = append(m.all, c)
		return c
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.all = append(m.all, c)
		return c
	}
	m.decisions = vec("quotad_decisions_total",
		"Decisions, by the limit that decided and the reason.", "limit", "reason")
	m.resolved.vec = m.decisions
	m.admittedUnits.vec = vec("quotad_admitted_units_total",
		"Units admitted, for each limit that they count for: also shadow limits, and before units are given back.",
		"limit")
	m.deniedUnits.vec = vec("quotad_denied_units_total",
		"Units denied, by the limit that denied them and the reason.", "limit", "reason")
	m.debtUnits.vec = vec("quotad_debt_units_total",
		"Units charged although they did not fit (charge: always), by limit: what they were then over.", "limit")
	m.lostCharges.vec = vec("quotad_lost_charge_units_total",
		"Units of charges (charge: always) that were lost, by limit: the store could not be charged, and the node had no room to keep them until it can.", "limit")
	m.refusedCharges.vec = vec("quotad_refused_charges_total",
		"Charges denied on buckets that are also asked about with a cost of 0, by limit: what they cost was used and counts nowhere. Write charge: always for the limit.", "limit")
	m.classUnits = vec("quotad_class_units_total",
		"Units of requests on limits with classes, by limit, class and what became of them (admitted, denied); requests of no class are empty.",
		"limit", "class", "outcome")
	m.unclassed.vec = vec("quotad_unclassed_requests_total",
		"Requests on limits with classes that name none of them, by limit: they may use all that the region holds.", "limit")
	m.storeFailures = counter("quotad_store_failures_total",
		"Requests that the store did not decide.")
	m.resets = vec("quotad_resets_total",
		"Buckets reset, by limit: each breaks the limit for its window.", "limit")
	m.repeats = vec("quotad_repeats_total",
		"Admitted requests sent again by their request_id: answered as the first time and not charged (answered), or sent again too often and decided anew (decided_anew).",
		"outcome")
	for _, outcome := range []string{repeatAnswered, repeatDecidedAnew} {
		m.repeats.WithLabelValues(outcome)
	}
	m.noLimit = vec("quotad_no_limit_total",
		"Requests to which no limit applies, by domain; domains that the limits document does not have are empty.",
		"domain")
	m.rememberedDenials = counter("quotad_remembered_denials_total",
		"Requests denied by a denial that the node remembered, without asking the store.")
	m.takenUnits = counter("quotad_client_taken_units_total",
		"Units that clients took to admit from by themselves (Take).")
	m.clientAdmitted = counter("quotad_client_admitted_units_total",
		"Units that clients say they admitted from what they took.")
	m.clientDenied = counter("quotad_client_denied_units_total",
		"Units that clients say they denied without asking.")
	return m
}

const (
	repeatAnswered    = "answered"
	repeatDecidedAnew = "decided_anew"
)

// sentAgain counts the decision of a request that was sent again with its id.
func (m *metrics) sentAgain(d algorithms.Decided) {
	switch {
	case d.Repeated:
		m.repeats.WithLabelValues(repeatAnswered).Inc()
	case d.TooOften:
		m.repeats.WithLabelValues(repeatDecidedAnew).Inc()
	}
}

func (m *metrics) decided(d Decision) { m.resolved.counter(d.Limit, d.Reason).Inc() }

// took records how long a decision took.
func (m *metrics) took(d time.Duration) { m.time.Observe(d.Seconds()) }

// resolved finds a counter by a limit and a reason, or by a limit alone, without hashing its labels
// each time. There are as many counters as pairs of a limit and a reason, and soon all of them are
// in the map.
type resolved struct {
	vec *prometheus.CounterVec

	met atomic.Pointer[map[outcome]prometheus.Counter] // the map is never changed, only replaced
	mu  sync.Mutex                                     // held while the map is replaced
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
	labels := []string{o.limit}
	if o.reason != "" {
		labels = append(labels, string(o.reason))
	}
	c := r.vec.WithLabelValues(labels...)
	more := map[outcome]prometheus.Counter{}
	if met := r.met.Load(); met != nil {
		more = maps.Clone(*met)
	}
	more[o] = c
	r.met.Store(&more)
	return c
}

// totals returns what was counted so far.
func (r *resolved) totals() map[outcome]float64 {
	all := map[outcome]float64{}
	if met := r.met.Load(); met != nil {
		for o, c := range *met {
			var m dto.Metric
			if c.Write(&m) == nil { // a counter's Write does not fail
				all[o] = m.GetCounter().GetValue()
			}
		}
	}
	return all
}
