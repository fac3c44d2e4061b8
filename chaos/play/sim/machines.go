package sim

import (
	"slices"

	"github.com/quotad/quotad/region/memory/store"
)

// widen carries out an act of the wider draw.
func (w *world) widen(a Act, r *region, n *node) {
	switch a.Do {
	case Stick:
		w.counts.Deeds[a.Do]++
		r.sticks[a.Key] = append(r.sticks[a.Key], n)
		w.in(a.For, func() { r.unstick(a.Key, n) })
	case NodeClock:
		w.found(a, rowClocks)
		n.ahead += a.Amount
		w.apart(r)
		w.in(a.For, func() { n.ahead -= a.Amount; w.apart(r) })
	case MatesCut:
		w.counts.Deeds[a.Do]++
		n.alone++
		w.in(a.For, func() { n.alone-- })
	case Snapshot:
		c := w.copies(r)
		w.in(a.For, func() {
			w.loses(r, a, rowStaleCopy)
			w.putBack(r, c)
		})
	case TokenLost:
		w.loses(r, a, rowStoreLost)
		for _, shard := range r.w.shards {
			r.store.remove(store.TokenKey(shard))
		}
	case StoreBusy:
		w.found(a, rowReplyLost)
		r.hinders()
		r.each += a.Amount
		r.store.setServers(r.servers())
		w.in(a.For, func() { r.each -= a.Amount; r.store.setServers(r.servers()) })
	case Reboot:
		w.reboot(a, r, n)
	}
}

// reboot ends a machine with a node and the region's store, and restarts both: the node with its
// journal, the store empty.
func (w *world) reboot(a Act, r *region, n *node) {
	if n.live != nil {
		w.fired(rowNodeRestarts)
		n.die()
	}
	r.hinders()
	r.down++
	r.store.setDown(true)
	w.in(a.For, func() {
		w.loses(r, a, rowStoreLost)
		r.store.restart()
		if r.down--; r.down == 0 {
			r.store.setDown(false)
		}
		n.restartIn(1)
	})
}

// unstick ends one act that sends the requests of a key to a node.
func (r *region) unstick(key int, n *node) {
	i := slices.Index(r.sticks[key], n)
	r.sticks[key] = slices.Delete(r.sticks[key], i, i+1)
}

// routed returns the node that a request of a key goes to: otherwise, if no act says more. A load
// balancer sends nothing to a dead node, but it does not know that a node is paused.
func (r *region) routed(key int, otherwise *node) *node {
	sticks := r.sticks[key]
	if len(sticks) == 0 || sticks[len(sticks)-1].live == nil {
		return otherwise
	}
	return sticks[len(sticks)-1]
}
