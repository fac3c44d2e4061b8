package sim

import (
	"math"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// checkTime checks that the time of a store's shard does not fall, whatever its clock shows and
// whatever it loses: a request is decided at a time not before any that was shown when it was asked
// about. Of a copy that was put back a node knows no more than what it was told itself.
func (n *node) checkTime(rq *request, of *bucket, at quantity.StoreTime) {
	n.decidesAnew()
	shard := store.ShardOf(n.w.keyOf(of))
	shown, told := n.r.shown, n.told
	if n.takesTime() {
		shown, told = rq.shown, rq.told
	}
	if n.r.stale {
		shown = told
	}
	if shown := shown[shard]; at < shown {
		n.w.breaks("time", "%s: the store's time falls by %d µs, to %d", n.name, shown.Sub(at), at)
	}
	n.told[shard] = max(n.told[shard], at)
	n.r.shown[shard] = max(n.r.shown[shard], at)
}

// decidesAnew records, at a decision by the store, that this node has begun another generation
// after a loss, although it does not stand by it yet: the store did not answer what followed.
func (n *node) decidesAnew() {
	r, generation := n.r, n.way.Generation()
	if !r.emptied || generation == r.generation || generation == r.begun {
		return
	}
	r.begun = generation
	r.timeIsLost(n)
}

// beats records that a node has just asked its store for its time: it knows now what the store has
// shown to anybody, even if the store refuses it because of its clock. It may not be so if the
// store or its answer was lost, if the node works under another document, or if no node has opened
// the replica in the store's place.
func (n *node) beats() {
	r := n.r
	if r.late() || r.stale || r.unconfirmed || r.emptied || n.w.adopted > 1 || n.live == nil ||
		n.live.Generation() != r.generation || r.replyLost > n.w.now-2*beat {
		return
	}
	for shard, shown := range r.shown {
		n.told[shard] = max(n.told[shard], shown)
	}
}

// latestShown returns the latest store time that a decision of the region has shown, µs since 1970.
func (r *region) latestShown() (latest quantity.StoreTime) {
	for _, shown := range r.shown {
		latest = max(latest, shown)
	}
	return latest
}

// timeIsLost records that a node has opened the store after a loss. The store's time is not before
// its clock, nor before what this node was told, or those of its region that it reaches. What the
// others were told is lost with the store if its clock was ahead: the windows until then come once
// more.
func (r *region) timeIsLost(by *node) {
	for shard, shown := range r.shown {
		known := max(r.knownOpening(by, shard), r.clock().Add(r.storeAhead))
		if known >= shown {
			continue
		}
		r.shown[shard] = known
		for _, b := range r.w.buckets() {
			if store.ShardOf(r.w.keyOf(b)) == shard {
				b.comesAgain(r, known, shown)
			}
		}
	}
}

// comesAgain allows what the region admitted in the windows between two store times once more, as
// far as the term for it reaches.
func (b *bucket) comesAgain(r *region, from, to quantity.StoreTime) {
	cause := "time of " + r.name + "'s store lost"
	f, first, last := &b.flows[r.index], b.windowAt(from), b.windowAt(to)
	weighs := int64(0)
	if b.limit.kind().Sliding() {
		weighs = 2 * b.window()
	}
	sum := quantity.Units(0)
	for window := first; window <= last; window++ {
		units := b.termMemory(r.index)
		if b.measured() {
			units = min(units, f.admitted[window])
		}
		sum += units
		if !b.limit.kind().Bucket() {
			b.allowFor(b.windows().Opens(quantity.Cell(window)),
				b.windows().Opens(quantity.Cell(window+1)).Add(weighs-1), units, cause)
		}
	}
	if b.limit.kind().Bucket() {
		b.allowFor(from, math.MaxInt64, min(sum, b.termAgain(r.index, to.Sub(from))), cause)
	}
}
