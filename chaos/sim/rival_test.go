package sim

import (
	"flag"
	"os"
	"testing"

	"github.com/quotad/quotad/chaos/baseline"
	"github.com/quotad/quotad/chaos/workload"
)

var tables = flag.Bool("tables", false, "print the whole comparison")

func TestCompare(t *testing.T) {
	if !*tables {
		return
	}
	suite := workload.Suite(1)
	rows := baseline.Compare(suite, append(baseline.Systems(), Quotad{}, Quotad{Borrow: true}), func(w *workload.Workload) baseline.Network { return baseline.Uniform(w.Regions, 40_000) }, 1)
	os.Stdout.WriteString(baseline.OverviewTable(baseline.Overview(rows)))
	os.Stdout.WriteString(baseline.Table(rows))
}
