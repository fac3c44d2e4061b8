package copies

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotad/quotad/quantity"
)

const (
	// maxNodes bounds the nodes of which copies are kept: those that told last.
	maxNodes = 64
	// silence is for how long a node may be heard of that tells nothing more. A node that ended is heard
	// of until gossip has noticed, which takes up to ten seconds, and as much again for the last of many.
	silence = 30 * time.Second
)

// Receiver knows how far the copies are that other nodes give this one. What they say of use its caller
// keeps. Safe for concurrent use.
type Receiver struct {
	mu    sync.Mutex
	nodes map[string]*held
}

// held is the copy of one node.
type held struct {
	life, next   uint64
	since, until quantity.StoreTime // until 0: it is not complete
	read         quantity.StoreTime
	heard        time.Duration // when its last part came
}

// Take takes a part whose uses are kept, at a time of a clock that is never set. It returns the number of
// the part that it takes next of that node.
func (r *Receiver) Take(now time.Duration, p Part) (next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.nodes[p.Node]
	switch {
	case p.Number == 0:
		h = &held{life: p.Life}
		r.keep(p.Node, h)
	case h == nil || h.life != p.Life || p.Number != h.next && p.Number+1 != h.next:
		return 0
	}
	h.next, h.heard = p.Number+1, now
	// That a node knows more than it did is told before all of it is.
	h.since, h.read = max(h.since, p.Since), max(h.read, p.Read)
	if p.Until > 0 {
		h.since, h.read, h.until = p.Since, p.Read, p.Until
	}
	return h.next
}

// keep keeps the copy of a node, and drops that of the node that told longest ago if there are too many.
func (r *Receiver) keep(node string, h *held) {
	if r.nodes == nil {
		r.nodes = map[string]*held{}
	}
	r.nodes[node] = h
	if len(r.nodes) <= maxNodes {
		return
	}
	oldest := node
	for other, o := range r.nodes {
		if other != node && (oldest == node || o.heard < r.nodes[oldest].heard) {
			oldest = other
		}
	}
	delete(r.nodes, oldest)
}

// Watch says which nodes are heard of at a time. One that is, and has told nothing for long, goes on
// without this node: its copy is not complete any more before it tells again.
func (r *Receiver) Watch(now time.Duration, alive func(node string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for node, h := range r.nodes {
		if h.until > 0 && now-h.heard > silence && alive(node) {
			h.until = 0
		}
	}
}

// Complete returns the copies that are complete, ordered by node.
func (r *Receiver) Complete() []Copy {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Copy
	for node, h := range r.nodes {
		if h.until > 0 {
			all = append(all, Copy{Node: node, Since: h.since, Until: h.until, Read: h.read})
		}
	}
	slices.SortFunc(all, func(a, b Copy) int { return strings.Compare(a.Node, b.Node) })
	return all
}
