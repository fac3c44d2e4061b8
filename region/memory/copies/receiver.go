package copies

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotad/quotad/quantity"
)

const (
	// maxLives bounds the lives of nodes of which copies are kept: those that told last.
	maxLives = 64
	// silence is how long gossip may go on hearing of a node that tells this one nothing. Gossip
	// notices the end of a node within ten seconds, and the ends of many within twice that.
	silence = 30 * time.Second
)

// Receiver knows how far the copies have come that other nodes give this one. Its caller keeps what
// the copies say of use. Safe for concurrent use.
type Receiver struct {
	mu    sync.Mutex
	lives map[life]*progress
	away  map[string]time.Duration // by node: when gossip last did not hear of it
}

// life is one start of a node.
type life struct {
	node   string
	number uint64
}

// progress is how far the copy of one life of a node has come. It outlasts that life: another life
// that begins without the journal tells nothing of this one.
type progress struct {
	next         uint64
	since, until quantity.StoreTime // until 0: it is not complete
	read         quantity.StoreTime
	settled      quantity.StoreTime
	heard        time.Duration // when its last part came
}

// Take takes in a part whose uses the caller has kept. now is the time of a clock that is never
// set. It returns the number of the part that it takes next from that node.
func (r *Receiver) Take(now time.Duration, p Part) (next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := life{p.Node, p.Life}
	h := r.lives[of]
	switch {
	case p.Number == 0:
		h = &progress{}
		r.keep(of, h)
	case h == nil || p.Number != h.next && p.Number+1 != h.next:
		return 0
	}
	h.next, h.heard = p.Number+1, now
	// A node says that it knows more before it has told all of that.
	h.since, h.read = max(h.since, p.Since), max(h.read, p.Read)
	if p.Until > 0 {
		h.since, h.read, h.until = p.Since, p.Read, p.Until
	}
	return h.next
}

// keep keeps the copy of a life. If there are too many, it drops that of the life that has been
// silent longest.
func (r *Receiver) keep(of life, h *progress) {
	if r.lives == nil {
		r.lives = map[life]*progress{}
	}
	r.lives[of] = h
	if len(r.lives) <= maxLives {
		return
	}
	oldest := of
	for other, o := range r.lives {
		if other != of && (oldest == of || o.heard < r.lives[oldest].heard) {
			oldest = other
		}
	}
	delete(r.lives, oldest)
}

// Watch takes in which nodes gossip hears of. If it hears of a node that has told nothing for long,
// the node goes on without telling this one. Its copies then count as incomplete until it tells
// again.
func (r *Receiver) Watch(now time.Duration, alive func(node string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := map[string]time.Duration{}
	for of, h := range r.lives {
		told[of.node] = max(told[of.node], h.heard)
	}
	away := make(map[string]time.Duration, len(told))
	for node, last := range told {
		if away[node] = r.away[node]; !alive(node) {
			away[node] = now
		}
		if now-max(last, away[node]) > silence {
			for of, h := range r.lives {
				if of.node == node {
					h.until = 0
				}
			}
		}
	}
	r.away = away
}

// Settle marks complete copies of lives that had ended when the store lost data at lostAt. late
// reports whether a copy is as late as the end of its life: then it has everything up to the loss.
func (r *Receiver) Settle(lostAt quantity.StoreTime, late func(Copy) bool) {
	for _, c := range r.Complete() {
		if c.Settled > 0 || c.Until >= lostAt || !late(c) {
			continue
		}
		r.mu.Lock()
		if h := r.lives[life{c.Node, c.Life}]; h != nil {
			h.settled = lostAt
		}
		r.mu.Unlock()
	}
}

// Complete returns the copies that are complete, ordered by node and life.
func (r *Receiver) Complete() []Copy {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Copy
	for of, h := range r.lives {
		if h.until > 0 {
			all = append(all, Copy{Node: of.node, Life: of.number, Since: h.since, Until: h.until, Read: h.read, Settled: h.settled})
		}
	}
	slices.SortFunc(all, func(a, b Copy) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), cmp.Compare(a.Life, b.Life))
	})
	return all
}
