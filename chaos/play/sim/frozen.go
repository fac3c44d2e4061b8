package sim

import (
	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// freeze has a machine with a node stand still, as a virtual one that is stopped with its clocks: when it
// goes on, neither clock in it shows that. Its wall clock is set after a.Amount µs.
func (w *world) freeze(a Act, n *node) {
	if n.live == nil || w.now < n.paused {
		return
	}
	w.found(a, rowPause)
	n.frozen++
	n.stood += a.For
	n.paused, n.asleep = w.now+a.For, w.now
	n.pauses++
	n.ahead -= a.For // when it next looks
	n.r.overlooks()
	w.in(a.For, n.resume)
	w.in(a.For+a.Amount, func() { n.ahead += a.For; w.apart(n.r) })
}

// spentAfter identifies what a node holds of a bucket as its machine goes on.
type spentAfter struct{ node, life, frozen int }

// spendsLate moves an answer from what a node held to the window that the store is in, if the node's
// machine stood still and no clock of it showed that, and the window of which it held them is over. The
// node takes it to be earlier by as much as its machine stood still, at most. It allows what is printed
// for that.
func (n *node) spendsLate(b *bucket, a *oracle.Answer, d admit.Decision) (late bool) {
	now := min(n.r.clock().Add(n.r.storeAhead), quantity.StoreTime(a.At).Add(n.stood))
	cell := b.limit.rule.CellOf(int64(now))
	if n.frozen == 0 || !d.FromMemory || !d.Allowed || cell <= a.Cell {
		return false
	}
	who := spentAfter{n.r.index<<8 | n.index, n.life, n.frozen}
	units := min(quantity.Units(a.Cost), b.termChunk(n.r.index, n.size)-b.late[who])
	b.late[who] += units
	b.allow(n.r, units, "a machine with a node of "+n.r.name+" that stood still with its clocks", false)
	a.At, a.Cell = int64(now), cell
	return true
}
