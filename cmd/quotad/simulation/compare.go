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

	"github.com/quotad/quotad/chaos/baseline"
	"github.com/quotad/quotad/chaos/sim"
	"github.com/quotad/quotad/chaos/workload"
)

// compare plays the same demands with quotad and with other ways of limiting, and prints the
// results.
func (s *Simulation) compare(ctx context.Context, out io.Writer) error {
	systems := append(baseline.Systems(), sim.Quotad{}, sim.Quotad{Borrow: true})
	rows, err := compareAll(ctx, workload.Suite(s.Hunt.From), systems, s.Hunt.From)
	if err != nil {
		return err
	}
	if s.Plot != "" {
		if err := os.WriteFile(s.Plot, []byte(baseline.Plot(rows)), 0o644); err != nil {
			return fmt.Errorf("write the plot: %w; choose another path with --plot", err)
		}
	}
	if s.Output == "json" {
		return baseline.WriteJSON(out, rows)
	}
	_, err = fmt.Fprintf(out, "%s\n%s", baseline.OverviewTable(baseline.Overview(rows)),
		baseline.Table(rows))
	return err
}

// compareAll compares on all processors, workload by workload. The rows are in the order of the
// suite.
func compareAll(ctx context.Context, suite []*workload.Workload, systems []baseline.System,
	seed uint64) ([]baseline.Figures, error) {
	rows := make([][]baseline.Figures, len(suite))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				rows[i] = baseline.Compare(suite[i:i+1], systems, usualNetwork, seed)
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
func usualNetwork(w *workload.Workload) baseline.Network {
	return baseline.Uniform(w.Regions, (RoundTrip / 2).Microseconds())
}
