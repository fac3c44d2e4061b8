package region

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/quantity"
)

// limitCollector tells of each limit how full its fullest bucket was lately. All is of one moment,
// so that the parts of a bucket fit one another.
type limitCollector struct{ node *Node }

var (
	limitUnits = prometheus.NewDesc("quotad_limit_units",
		"Units that the limit allows in a window, over all regions; where several entries of the document have its name, of that of the bucket of quotad_limit_used_ratio, and of the largest while that is not known.",
		[]string{"limit"}, nil)
	limitUsed = prometheus.NewDesc("quotad_limit_used_ratio",
		"Of the bucket of the limit that was fullest here in the last ten to twenty seconds, the part of this region's share that was used: 0 to 1. At 1 requests are denied.",
		[]string{"limit"}, nil)
	limitShare = prometheus.NewDesc("quotad_limit_share_units",
		"Units that this region held of that bucket; absent if no request on the limit was counted in that time.",
		[]string{"limit"}, nil)
	limitFree = prometheus.NewDesc("quotad_limit_free_units",
		"Units that were left of them; absent if no request on the limit was counted in that time.",
		[]string{"limit"}, nil)
)

// Describe implements prometheus.Collector.
func (limitCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{limitUnits, limitUsed, limitShare, limitFree} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c limitCollector) Collect(ch chan<- prometheus.Metric) {
	tell := func(d *prometheus.Desc, value float64, limit string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, limit)
	}
	units := map[string]quantity.Units{}
	for _, l := range c.node.Document().Limits {
		units[l.Name] = max(units[l.Name], l.Limit)
	}
	for limit, full := range c.node.limiter.Fullest() {
		tell(limitUsed, full.Used, limit)
		if full.Share == 0 {
			continue
		}
		tell(limitShare, float64(full.Share), limit)
		tell(limitFree, float64(full.Free), limit)
		units[limit] = full.Units
	}
	for limit, n := range units {
		tell(limitUnits, float64(n), limit)
	}
}
