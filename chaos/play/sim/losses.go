package sim

import (
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
)

// loses records that a region's store loses its data, and allows the excess that the printed bounds
// state for this loss.
func (w *world) loses(r *region, a Act, row int) {
	w.found(a, row)
	clear(r.once)
	r.losses++
	r.emptied, r.begun, r.openings = true, 0, nil
	r.lostBefore = r.lost
	for _, b := range w.buckets() {
		b.loses(r)
	}
}

// buckets returns the buckets of all limits.
func (w *world) buckets() (all []*bucket) {
	for _, l := range w.limits {
		all = append(all, l.buckets...)
	}
	return all
}

// stands records that a node has opened the region's store under a new generation. If a copy had
// been promoted, what it did until somebody noticed that it was a copy is lost with the rest. From
// then on the store's time is not before the node's clock. A node that finds the generation of a
// copy has opened nothing.
func (r *region) stands(generation uint64, by *node) {
	// After a loss the number may be lower, if a node whose clock was ahead chose the last one.
	if generation == r.generation || generation < r.generation && !r.emptied {
		return
	}
	if r.stale && generation <= r.back.generation {
		r.generation = generation
		return
	}
	first := r.generation == 0
	r.generation, r.stale, r.emptied, r.unconfirmed = generation, false, false, false
	if first {
		r.openings = nil
		return
	}
	if generation != r.begun {
		r.timeIsLost(by)
	}
	r.openings = nil
	if by.ahead > r.storeAhead {
		r.w.showed(r.ahead + by.ahead)
	}
	for _, b := range r.w.buckets() {
		b.lost[r.index] = b.cells().At(r.latest()) + 1
		b.mayBeClosed(r, journalAhead)
	}
	r.began = r.mayShow().Add(journalAhead)
}

// loses records that a region has lost a bucket now. Live nodes that decided on a bucket with a
// long window remember what was used, even while other nodes cannot hear them. Nothing is allowed
// for them. Of a node that has ended since, the region knows only what its journal's last
// checkpoint says, and nothing if the journal is lost too.
func (b *bucket) loses(r *region) {
	b.lost[r.index] = b.cells().At(r.latest()) + 1
	r.lost = b.limit.w.now
	b.mayBeClosed(r, 0)
	for k := range b.seen {
		if k.region == r.index {
			delete(b.seen, k)
		}
	}
	if !b.recovers() {
		return
	}
	for _, n := range r.nodes {
		if n.forgot > 0 && n.w.now < n.forgot+b.memory() {
			b.losesBoth(r, n)
			return
		}
		if at, ended := n.ended[b]; ended && n.w.now < at+b.memory() {
			b.allow(r, b.uncounted(r), "loss of "+r.name+"'s store and of a node that had decided",
				false)
			return
		}
	}
}

// recovers reports whether a lost bucket is restored. Other buckets are closed for a while.
func (b *bucket) recovers() bool {
	return algorithms.Recovers(b.limit.kind(), b.limit.policy.Window.Microseconds())
}

// losesBoth allows the excess after a region's store and a node's journal are lost or put back in
// the same window: nobody remembers what was used. What was lent is not known either. If the node
// has started again since, the store has told it which journal it had; then the region knows that
// rows are missing and counts them as lent, and only use is in excess.
func (b *bucket) losesBoth(r *region, n *node) {
	units, cause := min(b.termMemory(r.index), b.forgotten(r)), "loss of "+r.name+
		"'s store and of a journal"
	if !n.vague && r.remembers(n, b) {
		units = min(units, b.termCopied(r.index, b.fastest(r)))
	}
	if n.live != nil && n.born > n.forgot && r.lostBefore < n.forgot {
		b.allow(r, units, cause, false)
		return
	}
	b.allow(r, units, cause, true)
}

// reads has a node read on what its store has. Once it has read all, it forgot nothing, unless the store
// has lost what the node used before: since the journal was lost, or so late before that it still counts.
func (n *node) reads() {
	n.live.ReadStore()
	if n.forgot == 0 || n.fails || !n.live.Whole() {
		return
	}
	for _, b := range n.w.buckets() {
		if lost := max(n.r.lost, b.closed[n.r.index].at); lost > 0 && n.forgot < lost+b.memory() {
			return
		}
	}
	n.forgot, n.vague = 0, false
}

// forgets records that a node's journal is lost, or put back.
func (n *node) forgets() {
	n.forgot, n.noted, n.notedAt = n.w.now, 0, 0
	clear(n.told)
	delete(n.r.back.noted, n)
	for _, b := range n.w.buckets() {
		if n.r.lost > 0 && n.w.now < n.r.lost+b.memory() && b.recovers() {
			b.losesBoth(n.r, n)
		}
	}
}

// ends records that a life of the node has ended, and with it the memory of what it decided. If a
// lost store has not yet been told of these decisions, it learns of them from the node's journal,
// up to the last checkpoint.
func (n *node) ends() {
	if n.fails {
		clear(n.told) // its journal took no times any more
	}
	for _, b := range n.w.buckets() {
		u, decided := n.lately[b]
		if !decided || n.w.now >= u.now+b.memory() || !b.recovers() {
			continue
		}
		if n.fails {
			n.forgot, n.vague = n.w.now, true
		}
		n.ended[b] = n.w.now
		switch {
		case n.r.lost == 0 || n.w.now >= n.r.lost+b.memory():
		case n.fails:
			b.losesBoth(n.r, n)
		default:
			b.allow(n.r, b.uncounted(n.r), "end of a node of "+n.r.name+
				" after the loss of its store", false)
		}
	}
}

// memory returns how long a decision on the bucket may count, µs.
func (b *bucket) memory() int64 { return 3 * b.limit.policy.Window.Microseconds() }

// uncounted returns the most units that checkpoints of a bucket may miss of what a region used: the
// term for it, at the rate of the busiest second of this window and the one before, and no more
// than was used.
func (b *bucket) uncounted(r *region) quantity.Units {
	units := b.termCheckpoints(r.index, b.fastest(r))
	if b.measured() {
		units = min(units, b.used(r))
	}
	return units
}

// fastest returns the most units that a region admitted of the bucket in a second of this window and the
// one before.
func (b *bucket) fastest(r *region) quantity.Units {
	now := b.windowAt(r.clock().Add(min(r.storeAhead, 0)))
	return b.paces[r.index].fastest(now - 1)
}

// remembers reports whether a node other than this one, whose journal is lost, knows who used the region's
// store: it runs or comes back, with a journal of its own.
func (r *region) remembers(n *node, b *bucket) bool {
	return slices.ContainsFunc(r.nodes, func(m *node) bool {
		return m != n && m.life > 0 && !m.gone && (m.forgot == 0 || r.w.now-m.forgot >= b.memory())
	})
}

// cell returns the length of a cell, µs.
func (b *bucket) cell() int64 { return b.limit.policy.Cell().Microseconds() }

// deleteBucket deletes one bucket of a store.
func (w *world) deleteBucket(a Act, r *region) {
	b := w.limits[a.Limit%len(w.limits)].buckets[a.Key]
	w.found(a, rowStoreLost)
	w.vanishes(b, r)
	r.store.remove(r.w.keyOf(b))
}

// expire has a store drop expired keys after its clock has stepped forward. If the step is longer
// than keys outlive their use, this is as if buckets were deleted.
func (w *world) expire(r *region) {
	var held []*bucket
	for _, b := range w.buckets() {
		if r.store.holds(r.w.keyOf(b)) {
			held = append(held, b)
		}
	}
	r.store.expire()
	for _, b := range held {
		if r.storeAhead > algorithms.KeySlack && !r.store.holds(r.w.keyOf(b)) {
			w.vanishes(b, r)
		}
	}
}

// vanishes records that a bucket is gone from a region's store, and which nodes knew of the bucket.
func (w *world) vanishes(b *bucket, r *region) {
	b.loses(r)
	knew := map[*node]sighting{}
	for _, n := range r.nodes {
		if n.live != nil {
			known := n.live.ExistsUntil(b.id)
			if w.remembersAll() {
				known = max(known, n.knows(b))
			}
			knew[n] = sighting{known, n.life}
		}
	}
	b.gone[r.index] = &deletion{at: r.latest(), knew: knew}
}

// remembersAll reports whether nodes have room to remember all buckets. A node without room for a
// bucket does not know that it exists.
func (w *world) remembersAll() bool {
	most := w.plan.Memory.Buckets
	return most == 0 || len(w.limits)*len(w.plan.Keys) <= most
}

// refuses reports whether the store's clock is so far from the nodes' clocks that its scripts
// refuse to work.
func (r *region) refuses() bool {
	return r.storeAhead > algorithms.MaxClockStep || r.storeAhead < -algorithms.MaxClockStep
}

// refused reports whether the store's clock is so far from the node's that its scripts refuse to
// work for the node.
func (n *node) refused() bool {
	apart := n.r.storeAhead - n.ahead
	return apart > algorithms.MaxClockStep || apart < -algorithms.MaxClockStep
}

// uses records that a node uses a bucket of its store. If the bucket was deleted, it is known to be
// new from then on.
func (n *node) uses(b *bucket) {
	n.mayUse(b)
	b.gone[n.r.index] = nil
}

// mayUse allows the excess of a deleted bucket, if this node uses it and did not know that it
// existed, by the time of the store. A node that did know notices the deletion.
func (n *node) mayUse(b *bucket) {
	gone := b.gone[n.r.index]
	if gone == nil {
		return
	}
	b.mayBeClosed(n.r, 0)
	// A node without room for all buckets may have forgotten this one since.
	forgot := !n.w.remembersAll() && !gone.noticed
	s := gone.knew[n]
	if forgot || s.life != n.life || s.known <= n.r.storeTime() {
		n.r.forgetsAll(b, "bucket deleted in "+n.r.name)
	}
}

// restored records that a node has had its store restore a bucket. If the store lost everything
// earlier, a bucket that was deleted since is restored as if that loss had taken it: what was used
// in between is forgotten. A node that knew of the bucket has it restored as of its deletion.
func (n *node) restored(b *bucket, e exchange.Restored) {
	gone := b.gone[n.r.index]
	if gone == nil {
		return
	}
	if e.Restore.LostAt <= gone.at {
		n.r.forgetsAll(b, "bucket deleted in "+n.r.name)
	}
	if e.Result.Status == algorithms.StatusOK {
		b.gone[n.r.index] = nil
	}
}

// forgetsAll allows the excess of a bucket of which the region's store forgets all.
func (r *region) forgetsAll(b *bucket, cause string) {
	b.allow(r, min(b.termForgotten(r.index), b.forgotten(r)), cause, true)
}

// settlesLocal has a node book what it admitted without its store. That uses a deleted bucket, too.
func (n *node) settlesLocal() {
	var gone []*bucket
	for _, b := range n.w.buckets() {
		if b.gone[n.r.index] != nil && !n.r.store.holds(n.w.keyOf(b)) {
			gone = append(gone, b)
		}
	}
	n.live.BookLocal()
	for _, b := range gone {
		if n.r.store.holds(n.w.keyOf(b)) {
			n.uses(b)
		}
	}
}
