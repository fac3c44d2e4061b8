package serving

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/cmd/quotad/build"
)

// buildInfo returns the metric that says what the node was built from.
func buildInfo(b build.Info) prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "quotad_build_info",
		Help: "1, with what the node was built from: the version of quotad, its commit, and the version of Go."},
		[]string{"version", "revision", "goversion"})
	info.WithLabelValues(b.Version, b.Commit, b.Go).Set(1)
	return info
}
