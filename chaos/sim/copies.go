package sim

import "github.com/quotad/quotad/allocator"

// copied is a copy of a region's store, as it was when it was made.
type copied struct {
	mark int64 // the latest time that the store had shown, µs since 1970
}

// beat is how often each node has the store show its time, µs.
const beat = allocator.Second

// copies keeps a copy of a region's store.
func (w *world) copies(r *region) copied {
	c := copied{mark: r.latestShown()}
	for _, n := range r.nodes {
		if n.live != nil {
			c.mark = max(c.mark, n.way.Latest())
		}
	}
	r.store.keepCopy()
	return c
}

// putBack puts a copy in the place of a region's store, and notes which nodes have heard nothing later from the store than
// the copy shows: they take it for what they knew.
func (w *world) putBack(r *region, c copied) {
	r.store.putBack()
	r.stale, r.backAt, r.behind = true, w.now, map[*node]int{}
	for _, n := range r.nodes {
		if n.live == nil || n.way.Latest() <= c.mark {
			r.behind[n] = n.life
		}
	}
}

// onACopy allows for what such a node admits until another notices, which has the store show its time within a second. One
// that was dead then is in its next life.
func (n *node) onACopy(b *bucket, units int64) {
	r := n.r
	if life, behind := r.behind[n]; r.stale && behind && n.life-life <= 1 && n.w.now-r.backAt <= beat {
		b.allowUse(r, units, "node of "+r.name+" that knew nothing later than a copy")
	}
}
