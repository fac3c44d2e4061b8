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
	// silence is for how long a node may be heard of that tells nothing more. A node that ended is heard
	// of until gossip has noticed, which takes up to ten seconds, and as much again for the last of many.
	silence = 30 * time.Second
)

// Receiver knows how far the copies are that other nodes give this one. What they say of use its caller
// keeps. Safe for concurrent use.
type Receiver struct {
	mu    sync.Mutex
	lives map[life]*held
	away  map[string]time.Duration // by node: when it was last not heard of
}

// life is one start of a node.
type life struct {
	node   string
	number uint64
}

// held is the copy of one life of a node. Another life that begins without its journal tells nothing of it.
type held struct {
	next         uint64
	since, until quantity.StoreTime // until 0: it is not complete
	read         quantity.StoreTime
	settled      quantity.StoreTime
	heard        time.Duration // when its last part came
}

// Take takes a part whose uses are kept, at a time of a clock that is never set. It returns the number of
// the part that it takes next of that node.
func (r *Receiver) Take(now time.Duration, p Part) (next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := life{p.Node, p.Life}
	h := r.lives[of]
	switch {
	case p.Number == 0:
		h = &held{}
		r.keep(of, h)
	case h == nil || p.Number != h.next && p.Number+1 != h.next:
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

// keep keeps the copy of a life, and drops that of the life that told longest ago if there are too many.
func (r *Receiver) keep(of life, h *held) {
	if r.lives == nil {
		r.lives = map[life]*held{}
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

// Watch says which nodes are heard of at a time. One that is, and of which no life has told anything for long,
// goes on without this node: its copies are not complete any more before it tells again.
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

// Settle notes of copies that late says to be as late as their lives that they have all until the store lost data,
// which it did after their end.
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
