package simulation

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/play/sim"
	"github.com/quotad/quotad/chaos/play/workload"
	"github.com/quotad/quotad/chaos/real/report"
	"github.com/quotad/quotad/chaos/rivals"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// compare plays the same demands with quotad and with other ways of limiting, and prints the
// results.
func (s *Simulation) compare(ctx context.Context, out io.Writer) error {
	systems := append(rivals.Systems(), sim.Quotad{}, sim.Quotad{Borrow: true})
	rows, err := compareAll(ctx, workload.Suite(s.Hunt.From), systems, s.Hunt.From)
	if err != nil {
		return err
	}
	if s.Plot != "" {
		if err := os.WriteFile(s.Plot, []byte(picture(rows).SVG()), 0o644); err != nil {
			return fmt.Errorf("write the plot: %w; choose another path with --plot", err)
		}
	}
	if s.Output == "json" {
		return show.JSON(out, rows)
	}
	_, err = fmt.Fprintf(out, "%s\n%s", rivals.OverviewTable(rivals.Overview(rows)),
		rivals.Table(rows))
	return err
}

// picture returns a chart of overshoot against false denials, for all systems and workloads.
func picture(rows []rivals.Figures) report.Scatter {
	s := report.Scatter{Title: "Above the limit, and denied without need",
		Note:   "each small mark is one workload, each large one a system's mean over all of them; lower left is better",
		Across: "false denials: units that one pooled limiter admits and the system did not",
		Up:     "overshoot of the worst window, of the limit"}
	at := func(falsely, over rivals.Millionths, what string) report.Mark {
		return report.Mark{X: float64(falsely) / 10_000, Y: float64(over) / 10_000,
			Text: fmt.Sprintf("%s: %s over, %s falsely denied", what, over, falsely)}
	}
	for _, o := range rivals.Overview(rows) {
		g := report.Group{Name: o.System, Mean: at(o.False, o.Over, o.System+", in the mean")}
		if o.WaitP99 > 0 {
			g.Name += fmt.Sprintf(", waits %d ms", (o.WaitP99+999)/1000)
		}
		for _, f := range rows {
			if f.System == o.System {
				g.Marks = append(g.Marks, at(f.FalseRate, f.OvershootMax, f.System+", "+f.Workload))
			}
		}
		s.Groups = append(s.Groups, g)
	}
	return s
}

// compareAll compares on all processors, workload by workload. The rows are in the order of the
// suite.
func compareAll(ctx context.Context, suite []*workload.Workload, systems []rivals.System,
	seed uint64) ([]rivals.Figures, error) {
	rows := make([][]rivals.Figures, len(suite))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				w := suite[i]
				rows[i] = rivals.Compare(w, systems, usualNetwork(w), seed)
			}
		})
	}
	for i := range suite {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return slices.Concat(rows...), ctx.Err()
}

// RoundTrip is the round trip between any two regions, in a comparison and in the demo.
const RoundTrip = 80 * time.Millisecond

// usualNetwork returns a network in which every message takes half a round trip.
func usualNetwork(w *workload.Workload) rivals.Network {
	return rivals.Uniform(w.Regions, (RoundTrip / 2).Microseconds())
}
