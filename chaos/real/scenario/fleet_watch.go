package scenario

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/real/process"
)

// watchEvery is the time between checks of whether a node is ready. watchTimeout bounds each check.
const (
	watchEvery   = 100 * time.Millisecond
	watchTimeout = time.Second
)

// Watch implements Stage.
func (f *Fleet) Watch(ctx context.Context, note func(Health)) {
	var all sync.WaitGroup
	for _, r := range f.fleet.Regions {
		for i, n := range r.Nodes {
			all.Go(func() { f.watch(ctx, n, i+1, note) })
		}
	}
	all.Wait()
}

// watch checks one node again and again.
func (f *Fleet) watch(ctx context.Context, n *process.Node, number int, note func(Health)) {
	again := time.NewTicker(watchEvery)
	defer again.Stop()
	for first, before := true, false; ; first = false {
		asking, cancel := context.WithTimeout(ctx, watchTimeout)
		ready := n.Running() && n.IsReady(asking)
		cancel()
		if ctx.Err() != nil {
			return
		}
		h := Health{At: time.Now(), Region: n.Region, Node: number, Ready: ready}
		if h.Ended = f.ended(n); h.Ended {
			h.Why = lastLine(n.Output())
		}
		if first || ready != before || h.Ended {
			note(h)
		}
		before = ready
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// ended reports whether a node has ended by itself since the last call.
func (f *Fleet) ended(n *process.Node) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.nodes[n]
	if at.down || at.told || n.Running() {
		return false
	}
	at.told = true
	return true
}

// lastLine returns the last line of an output, shortened.
func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	last := lines[len(lines)-1]
	return last[:min(len(last), 300)]
}
