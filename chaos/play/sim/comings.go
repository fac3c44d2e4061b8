package sim

import (
	"context"
	"slices"

	"github.com/quotad/quotad/allocator"
)

// comeAndGo carries out an act by which a region has other nodes than before, or an operator's word
// about those that it lost.
func (w *world) comeAndGo(a Act, r *region, n *node) {
	switch a.Do {
	case NodeAdded:
		w.adds(a, r)
	case NodeGone:
		w.endsForGood(a, r, n)
	case ZoneLost:
		w.losesZone(a, r, n)
	case Recover:
		w.recovers(a, n)
	}
}

// maxNodes is the most nodes that a region comes to have.
const maxNodes = 3

// adds starts another node in a region, with an empty journal. With a.Back the operator has the nodes'
// files say so; with an Amount, too, the others are restarted one by one, each so many µs after the one
// before. Otherwise they take it in when they next start.
func (w *world) adds(a Act, r *region) {
	first := r.nodes[0]
	if len(r.nodes) >= maxNodes || first.life == 0 { // or it joins later itself
		return
	}
	w.counts.Deeds[a.Do]++
	if a.Back {
		r.size++
	}
	added := newNode(r, len(r.nodes), first.file)
	added.added = max(w.now, 1)
	added.unheard = !slices.ContainsFunc(r.nodes, func(n *node) bool { return n.live != nil }) ||
		slices.ContainsFunc(r.nodes, func(n *node) bool { return n.refused() || w.now < n.paused })
	if r.stale {
		r.behind[added] = 0
	}
	r.nodes = append(r.nodes, added)
	added.restartIn(0)
	if !a.Back || a.Amount == 0 {
		return
	}
	for i, n := range r.nodes[:added.index] {
		w.in(int64(i+1)*a.Amount, func() {
			if n.live != nil && w.now < w.plan.Heal {
				w.leave(Act{Do: Leave, For: allocator.Second / 4}, n)
			}
		})
	}
}

// endsForGood ends a node, of several, and takes its journal away. The setting still counts it.
func (w *world) endsForGood(a Act, r *region, n *node) {
	others := 0
	for _, m := range r.nodes {
		if m != n && !m.gone && m.life > 0 {
			others++
		}
	}
	if n.live == nil || others == 0 {
		return
	}
	w.found(a, rowJournalLost)
	n.die()
	n.gone = true
	r.left[n.own()] = w.now
	n.forgets()
}

// losesZone has a region's store lose all, and one node its journal, or so many with an Amount, but for
// one. The nodes are back at once under their own names, and the store with its next answer.
func (w *world) losesZone(a Act, r *region, n *node) {
	lost := min(max(int(a.Amount), 1), max(len(r.nodes)-1, 1))
	copied := r.copiesAll() && lost < len(r.nodes)
	for i := range lost {
		m := r.nodes[(n.index+i)%len(r.nodes)]
		if m.life == 0 || m.gone {
			continue
		}
		w.fired(rowJournalLost)
		if m.live != nil {
			m.die()
		}
		m.journals++
		m.newJournal()
		m.forgets()
		clear(m.durable)
		m.restartIn(w.wires[0][0].random.Int64N(allocator.Second))
	}
	for i := range lost { // once all of them have ended
		if m := r.nodes[(n.index+i)%len(r.nodes)]; copied && m.life > 0 && !m.gone {
			m.copied = m.forgot
		}
	}
	w.loses(r, a, rowStoreLost)
	r.store.restart()
}

// longCopied is how long nodes live undisturbed until others surely have copies of what they saw.
const longCopied = 10 * allocator.Second

// copiesAll reports whether each node of the region has copies of what the others saw, for nothing went wrong
// for so long.
func (r *region) copiesAll() bool {
	now := r.w.now
	for _, n := range r.nodes {
		if n.live == nil || now-n.born < longCopied || n.forgot > 0 {
			return false
		}
	}
	// While the store's time stands still, since its clock was ahead, it does not say how old a copy is.
	return now-r.undisturbed >= longCopied+r.wasAhead() && (r.lost == 0 || now-r.lost >= longCopied)
}

// toldByCopies reports whether copies tell what a node did before a loss at a time. It was lost just then.
func (n *node) toldByCopies(lost int64) bool {
	return n.copied > 0 && n.copied == n.forgot && lost-n.copied <= 2*journalAhead
}

// forgetsCopies records that a node has ended that may have had copies of what others did before a loss. It
// knows no more how late they are.
func (n *node) forgetsCopies() {
	for _, m := range n.r.nodes {
		if m != n {
			m.copied = 0
		}
	}
}

// recovers has a node take an operator's word about all losses of its region's store so far. It allows
// what is printed for that, also if the node hears no answer.
func (w *world) recovers(a Act, n *node) {
	r := n.r
	n.at(w.now, func() {
		w.counts.Deeds[a.Do]++
		r.spoken = true
		for _, b := range w.buckets() {
			lost := b.closed[r.index].at
			if lost > 0 && w.now-lost < b.memory() && b.recovers() && b.waived[r.index] != lost {
				b.waived[r.index] = lost
				b.allow(r, min(b.termMemory(r.index), b.forgotten(r)), "the operator's word in "+r.name, true)
			}
		}
		if err := n.live.Waive(context.Background()); err != nil {
			w.tell(r, "%s: %v", n.name, err)
		} else if !r.emptied && !r.stale && n.live.Generation() == r.generation {
			r.word = w.now
		}
		n.drain()
	})
}
