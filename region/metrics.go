package region

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the numbers of one node. Labels come from the configuration alone, never from keys of requests.
type metrics struct {
	registry      *prometheus.Registry
	decisions     *prometheus.CounterVec
	storeFailures prometheus.Counter
	refunded      *prometheus.CounterVec
	resets        *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_decisions_total", Help: "Decisions, by the limit that decided and the reason."}, []string{"limit", "reason"}),
		storeFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_store_failures_total", Help: "Requests that the store did not decide."}),
		refunded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_refunded_units_total", Help: "Units given back by refunds, by limit."}, []string{"limit"}),
		resets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_resets_total", Help: "Buckets reset, by limit: each breaks the limit for its window."}, []string{"limit"}),
	}
	m.registry.MustRegister(m.decisions, m.storeFailures, m.refunded, m.resets)
	return m
}

func (m *metrics) decided(d Decision) {
	m.decisions.WithLabelValues(d.Limit, string(d.Reason)).Inc()
}

// Metrics returns the registry of the node's numbers.
func (n *Node) Metrics() *prometheus.Registry { return n.metrics.registry }

// watch registers the numbers that are read from the node when somebody looks.
func (m *metrics) watch(n *Node) { m.registry.MustRegister(nodeCollector{n}) }

type nodeCollector struct{ node *Node }

var (
	degradedDesc = prometheus.NewDesc("quotad_degraded", "1 if the region's last answer is older than 3 s.", []string{"peer"}, nil)
	ageDesc      = prometheus.NewDesc("quotad_peer_age_seconds", "Time since the last answered call to the region was sent; absent before the first.", []string{"peer"}, nil)
	countDesc    = prometheus.NewDesc("quotad_exchange_total", "What the exchange of rights has done, in units or asks, by name.", []string{"what"}, nil)
	journalDesc  = prometheus.NewDesc("quotad_journal_failed", "1 if the journal failed: nothing is lent until the node starts anew.", nil, nil)
	genDesc      = prometheus.NewDesc("quotad_store_generation", "Generation of the region's store.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c nodeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{degradedDesc, ageDesc, countDesc, journalDesc, genDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c nodeCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.node.Status()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(genDesc, float64(s.Generation))
	gauge(journalDesc, one(s.Exchange.JournalFailed))
	for _, p := range s.Peers {
		gauge(degradedDesc, one(p.Degraded), p.Region)
		if p.Heard {
			gauge(ageDesc, p.Age.Seconds(), p.Region)
		}
	}
	for _, count := range s.Counters() {
		ch <- prometheus.MustNewConstMetric(countDesc, prometheus.CounterValue, float64(count.Value), count.Name)
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
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
