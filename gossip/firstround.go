package gossip

import (
	"context"
	"sync"
)

// firstRound knows when the first calls of a node have ended: one to each seed and remembered peer
// but the node itself. Safe for concurrent use.
type firstRound struct {
	over chan struct{} // closed when they have

	mu      sync.Mutex
	all     bool // all of them were begun
	any     bool // there was one
	waiting int  // lookups and exchanges under way
}

// calls notes that a call or a lookup begins. The caller calls ended when it ends.
func (f *firstRound) calls() (ended func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.any = true
	f.waiting++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waiting--
		f.look()
	}
}

// begun notes that all calls of the first round have begun.
func (f *firstRound) begun() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = true
	f.look()
}

// look closes over if the round is. The caller holds mu.
func (f *firstRound) look() {
	if !f.all || f.waiting > 0 {
		return
	}
	select {
	case <-f.over:
	default:
		close(f.over)
	}
}

// firstRound waits until the first round is over, or ctx ends. It reports whether it had anybody to
// call.
func (c *caller) firstRound(ctx context.Context) (any bool) {
	select {
	case <-c.first.over:
	case <-ctx.Done():
	}
	c.first.mu.Lock()
	defer c.first.mu.Unlock()
	return c.first.any
}
