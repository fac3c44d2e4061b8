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
	decisions *prometheus.CounterVec
	resolved  resolved // of decisions
	// units of requests, by limit: admittedUnits have no reason
	admittedUnits, deniedUnits resolved
	time                       prometheus.Histogram
	storeFailures              prometheus.Counter
	local                      prometheus.Counter
	booked                     prometheus.Counter
	refunded                   *prometheus.CounterVec
	resets                     *prometheus.CounterVec
	repeats                    *prometheus.CounterVec
	noLimit                    *prometheus.CounterVec
	// denials that were told from memory
	rememberedDenials prometheus.Counter
	// units of chunks: asked for, spent, given back, and charged though nobody can spend them
	prefetchedUnits, spentUnits, returnedUnits, strandedUnits prometheus.Counter
	// units that clients took, gave back, and said that they admitted and denied by themselves
	takenUnits, givenBackUnits, clientAdmitted, clientDenied prometheus.Counter
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
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_decisions_total",
			Help: "Decisions, by the limit that decided and the reason."},
			[]string{"limit", "reason"}),
		time: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "quotad_decision_seconds",
			Help:    "Time that decisions took inside the node, peeks apart.",
			Buckets: decisionBuckets, NativeHistogramBucketFactor: NativeFactor,
			NativeHistogramMaxBucketNumber: NativeBuckets}),
		storeFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_store_failures_total", Help: "Requests that the store did not decide."}),
		local: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_local_admitted_units_total",
			Help: "Units admitted without the store (on_store_failure: local), counted for each limit that they were charged to."}),
		booked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_local_booked_units_total",
			Help: "Units admitted without the store that it was charged with afterwards, or that no longer counted there; after a loss of the store again."}),
		refunded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_refunded_units_total", Help: "Units given back by refunds, by limit."},
			[]string{"limit"}),
		resets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_resets_total",
			Help: "Buckets reset, by limit: each breaks the limit for its window."},
			[]string{"limit"}),
		repeats: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_repeats_total",
			Help: "Admitted requests sent again by their request_id: answered as the first time and not charged (answered), or sent again too often and decided anew (decided_anew)."}, []string{"outcome"}),
		noLimit: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_no_limit_total",
			Help: "Requests to which no limit applies, by domain; domains that the limits document does not have are empty."},
			[]string{"domain"}),
		rememberedDenials: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_remembered_denials_total",
			Help: "Requests denied by a denial that the node remembered, without asking the store."}),
		prefetchedUnits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_prefetched_units_total",
			Help: "Units that the store was charged with for requests to come (consistency: prefetch)."}),
		spentUnits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_prefetched_spent_units_total",
			Help: "Prefetched units that requests were admitted from, without asking the store."}),
		returnedUnits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_prefetched_returned_units_total",
			Help: "Prefetched units that were given back to the store."}),
		strandedUnits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_prefetched_stranded_units_total",
			Help: "Prefetched units that were neither spent nor given back: they count as used until their cell no longer counts."}),
		takenUnits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_client_taken_units_total",
			Help: "Units that clients took to admit from by themselves (Take)."}),
		givenBackUnits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_client_returned_units_total",
			Help: "Units that clients gave back (GiveBack)."}),
		clientAdmitted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_client_admitted_units_total",
			Help: "Units that clients say they admitted from what they took."}),
		clientDenied: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_client_denied_units_total",
			Help: "Units that clients say they denied without asking."}),
	}
	for _, outcome := range []string{repeatAnswered, repeatDecidedAnew} {
		m.repeats.WithLabelValues(outcome)
	}
	m.resolved.vec = m.decisions
	m.admittedUnits.vec = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotad_admitted_units_total",
		Help: "Units admitted, for each limit that they count for: also shadow limits, and before refunds."},
		[]string{"limit"})
	m.deniedUnits.vec = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotad_denied_units_total",
		Help: "Units denied, by the limit that denied them and the reason."},
		[]string{"limit", "reason"})
	return m
}

// all returns the metrics for a registry.
func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.decisions, m.admittedUnits.vec, m.deniedUnits.vec, m.time, m.storeFailures, m.local, m.booked,
		m.refunded, m.resets, m.repeats, m.noLimit, m.rememberedDenials,
		m.prefetchedUnits, m.spentUnits, m.returnedUnits, m.strandedUnits,
		m.takenUnits, m.givenBackUnits, m.clientAdmitted, m.clientDenied}
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
