package sim

import (
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// copied describes a copy of a region's store.
type copied struct {
	replica
	generation uint64             // the last that a node had begun
	mark       quantity.StoreTime // the latest time that the store had shown, µs since 1970
	at         int64              // when it was made
	// Of the nodes that knew a later time when the copy was put back, knew has the life in which
	// they knew it, and noted those whose journals have it.
	knew       map[*node]int
	noted      map[*node]bool
	overlooked bool // since then no such node ran, and others did
}

// beat is how often each node reads the store's time, µs.
const beat = allocator.Second

// copies makes a copy of a region's store.
func (w *world) copies(r *region) copied {
	c := copied{replica: r.store.replica(), generation: max(r.generation, r.begun),
		mark: r.latestShown(), at: w.now}
	for _, n := range r.nodes {
		if n.live != nil {
			c.mark = max(c.mark, n.way.Latest())
		}
	}
	return c
}

// putBack replaces a region's store by a copy of it. It records which nodes have heard no later
// time from the store than the copy shows: they do not notice that the store is older.
func (w *world) putBack(r *region, c copied) {
	c.replica.putBack()
	w.onCopy(r, c)
}

// promotes has a replica take the place of a region's store. Nodes admit nothing from it before all
// that the store had answered confirm that it has what they had: one that has started anew since
// knows no more than its journal.
func (w *world) promotes(r *region, c copied) {
	c.replica.promote()
	w.onCopy(r, c)
	clear(r.behind)
}

// onCopy records that a region's store goes on with the data of a copy.
func (w *world) onCopy(r *region, c copied) {
	r.stale, r.backAt, r.behind = true, w.now, map[*node]int{}
	c.knew, c.noted = map[*node]int{}, map[*node]bool{}
	for _, n := range r.nodes {
		if n.live == nil || n.way.Latest() <= c.mark && n.heardAt <= c.at {
			r.behind[n] = n.life
		} else {
			c.knew[n] = n.life
		}
		c.noted[n] = n.noted > c.mark || n.notedAt > c.at
	}
	r.back = c
	r.overlooks()
}

// overlooks allows what a region may admit in excess on a copy of its store, if nodes work with it
// and none that knows a later time. Times that the copy does not know come again. A node whose
// clock the store refuses does not work with it, nor does one that stands still.
func (r *region) overlooks() {
	if !r.stale || r.back.overlooked {
		return
	}
	runs := false
	for _, n := range r.nodes {
		if n.live == nil || n.w.now < n.paused || n.refused() {
			continue
		}
		if r.back.noted[n] || r.back.knew[n] == n.life {
			return
		}
		runs = true
	}
	if !runs {
		return
	}
	r.back.overlooked = true
	for _, n := range r.nodes {
		clear(n.told) // those that run know only times that the copy knows
	}
	for _, o := range r.openings {
		clear(o.told)
	}
	for _, b := range r.w.buckets() {
		r.forgetsAll(b, "no node of "+r.name+" that knew more than a copy ran")
	}
}

// notes records that a node's journal has just written down the store's time.
func (n *node) notes() {
	if !n.fails {
		n.noted, n.notedAt = max(n.noted, n.way.Latest()), max(n.notedAt, n.heardAt)
	}
}

// hears records that the store has just answered a node: whatever time that was, it is later than
// any that the store showed before. An answer of a busy store may be from before.
func (n *node) hears() {
	if n.r.each == 0 {
		n.heardAt = n.w.now
	}
}

// onACopy allows what such a node admits until another node notices, within one beat. A node that
// was dead when the copy was put back is in its next life by now.
func (n *node) onACopy(b *bucket, units quantity.Units) {
	r := n.r
	if life, behind := r.behind[n]; r.stale && behind && n.life-life <= 1 &&
		n.w.now-r.backAt <= beat {
		b.allow(r, units, "node of "+r.name+" that knew nothing later than a copy", false)
	}
}
