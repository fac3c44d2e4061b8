package sim

import (
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// copied describes a copy of a region's store at the time the copy was made.
type copied struct {
	mark quantity.StoreTime // the latest time that the store had shown, µs since 1970
}

// beat is how often each node reads the store's time, µs.
const beat = allocator.Second

// copies makes a copy of a region's store.
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

// putBack replaces a region's store by a copy of it. It records which nodes have heard no later
// time from the store than the copy shows: they do not notice that the store is older.
func (w *world) putBack(r *region, c copied) {
	r.store.putBack()
	r.stale, r.backAt, r.behind = true, w.now, map[*node]int{}
	for _, n := range r.nodes {
		if n.live == nil || n.way.Latest() <= c.mark {
			r.behind[n] = n.life
		}
	}
}

// onACopy allows what such a node admits until another node notices, within one beat. A node that
// was dead when the copy was put back is in its next life by now.
func (n *node) onACopy(b *bucket, units quantity.Units) {
	r := n.r
	if life, behind := r.behind[n]; r.stale && behind && n.life-life <= 1 &&
		n.w.now-r.backAt <= beat {
		b.allowUse(r, units, "node of "+r.name+" that knew nothing later than a copy")
	}
}
