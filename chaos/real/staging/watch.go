package staging

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/real/scenario"
)

// watchEvery is the time between two requests for a node's status. watchTimeout bounds each
// request.
const (
	watchEvery   = 200 * time.Millisecond
	watchTimeout = time.Second
)

// Watch implements scenario.Stage. It notices the end of a node only when the node has been started
// again.
func (s *Stage) Watch(ctx context.Context, note func(scenario.Health)) {
	var all sync.WaitGroup
	for _, r := range s.nodes.Regions {
		for i, p := range s.places[r.Name] {
			all.Go(func() { p.watch(ctx, i+1, note) })
		}
	}
	all.Wait()
}

// watch asks one node again and again.
func (p *place) watch(ctx context.Context, number int, note func(scenario.Health)) {
	start := uint64(0) // the node's incarnation; 0: not known yet
	for first, before := true, false; ; first = false {
		asking, cancel := context.WithTimeout(ctx, watchTimeout)
		status, err := p.calls.Status(asking)
		cancel()
		if ctx.Err() != nil {
			return
		}
		h := scenario.Health{At: time.Now(), Region: p.region, Node: number, Ready: err == nil &&
			status.Ready}
		if err == nil {
			if h.Ended = start != 0 && status.Journal.Incarnation != start; h.Ended {
				h.Why = fmt.Sprintf("it was started again: start %d", status.Journal.Incarnation)
			}
			start = status.Journal.Incarnation
		}
		if first || h.Ready != before || h.Ended {
			note(h)
		}
		if before = h.Ready; !scenario.Sleep(ctx, watchEvery) {
			return
		}
	}
}
