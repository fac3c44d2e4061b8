package sim

import "github.com/quotad/quotad/allocator"

// copied is a copy of a region's store, as it was when it was made.
type copied struct {
	at         int64 // µs since the start
	mark       int64 // the latest time that the store had shown, µs since 1970
	generation uint64
	admitted   map[*bucket]int64 // by the region, in all
}

// beat is how often each node has the store show its time, µs.
const beat = allocator.Second

// copies keeps a copy of a region's store.
func (w *world) copies(r *region) copied {
	c := copied{at: w.now, mark: r.shown, generation: r.generation, admitted: map[*bucket]int64{}}
	for _, n := range r.nodes {
		if n.live != nil {
			c.mark = max(c.mark, n.way.Latest())
		}
	}
	for _, b := range w.buckets() {
		c.admitted[b] = b.admitted[r.index]
	}
	r.store.keepCopy()
	return c
}

// putBack puts a copy in the place of a region's store, and allows for the nodes that have heard nothing later from
// the store than the copy shows, while others have. If such a node calls first the copy's time goes on, and who knew better
// does not notice: what was admitted since is admitted again, which is a second's at most, as each node has the
// store show its time every second.
func (w *world) putBack(r *region, c copied) {
	r.store.putBack()
	r.stale, r.copy, r.backAt, r.behind = true, c, w.now, map[*node]int{}
	for _, n := range r.nodes {
		if n.live != nil && n.way.Latest() <= c.mark {
			r.behind[n] = n.life
		}
	}
	if len(r.behind) == 0 || w.now-c.at > beat {
		return
	}
	for _, b := range w.buckets() {
		b.allow(r, b.admitted[r.index]-c.admitted[b], "copy put back in "+r.name+", and a node knew nothing later", true)
	}
}

// onACopy allows for what such a node admits of a copy of an earlier generation, until another notices, which has the store
// show its time within a second.
func (n *node) onACopy(b *bucket, units int64) {
	r := n.r
	if life, behind := r.behind[n]; r.stale && behind && life == n.life && r.copy.generation < r.generation && n.w.now-r.backAt <= beat {
		b.allowUse(r, units, "node of "+r.name+" that knew nothing later than a copy")
	}
}
