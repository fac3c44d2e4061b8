package envoys

import "github.com/prometheus/client_golang/prometheus"

// counts is what is counted as it happens. What the machine counts is read at each scrape.
type counts struct {
	reports, refused, late, putOff, crowded prometheus.Counter
	abandoned                               *prometheus.CounterVec
}

func newCounts() *counts {
	return &counts{
		reports: prometheus.NewCounter(prometheus.CounterOpts{Name: "quotad_rlqs_reports_total",
			Help: "Reports of Envoys, each of one bucket id."}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_rlqs_refused_streams_total",
			Help: "Streams of Envoys that were refused because the node has as many as it may."}),
		late: prometheus.NewCounter(prometheus.CounterOpts{Name: "quotad_rlqs_late_total",
			Help: "Assignments that were not sent because they had waited for too long: their Envoys read too slowly, or the node has too much to do."}),
		putOff: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_rlqs_new_ids_put_off_total",
			Help: "New bucket ids that waited for their turn, because more came than are taken at a time: their Envoys do what they do without an assignment for longer."}),
		crowded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_rlqs_crowded_total",
			Help: "Calls for rights of a cell of which the node held none and as many other nodes of the region hold some as may: it assigns nothing of that cell."}),
		abandoned: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_rlqs_abandoned_total",
			Help: "Reports of bucket ids to which nothing is assigned: no limit applies (no_limit), one that has no assign (unassignable), no request can have these descriptors (invalid), or the node has as many as it may (no_room)."},
			[]string{"reason"})}
}

// Collectors returns the metrics that are counted as things happen, and those that are read.
func (a *Assigner) Collectors() []prometheus.Collector {
	c := a.counts
	all := []prometheus.Collector{c.reports, c.refused, c.late, c.putOff, c.crowded, c.abandoned}
	read := func(name, help string, kind func(prometheus.Opts, func() float64) prometheus.Collector,
		value func() int64) {
		all = append(all, kind(prometheus.Opts{Name: name, Help: help},
			func() float64 { return float64(value()) }))
	}
	read("quotad_rlqs_streams", "Streams of Envoys.", gauge, func() int64 { return a.Stats().Streams })
	read("quotad_rlqs_new_ids", "New bucket ids that wait for their turn.", gauge, func() int64 {
		a.mu.Lock()
		defer a.mu.Unlock()
		return int64(a.newcomers.waiting)
	})
	read("quotad_rlqs_silent_streams",
		"Streams of Envoys that missed two reports: what was assigned to them stays held.", gauge,
		func() int64 { return a.Stats().Silent })
	read("quotad_rlqs_buckets", "Pairs of a stream and a bucket id that may have assignments.",
		gauge, func() int64 { return a.Stats().Shares })
	read("quotad_rlqs_assignments_total",
		"Assignments that were new or changed: each starts a full token bucket at an Envoy.", total,
		func() int64 { return a.Stats().Assigned })
	read("quotad_rlqs_renewals_total", "Assignments that were sent once more before they ended.",
		total, func() int64 { return a.Stats().Renewed })
	read("quotad_rlqs_expired_total",
		"Assignments that ended and were not replaced: their Envoys do what they do without one.",
		total, func() int64 { return a.Stats().Expired })
	read("quotad_rlqs_unpaid_total",
		"Assignments that were put off because the store had no tokens for their bursts.", total,
		func() int64 { return a.Stats().Unpaid })
	return all
}

func gauge(o prometheus.Opts, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts(o), value)
}

func total(o prometheus.Opts, value func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts(o), value)
}
