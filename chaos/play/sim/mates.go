package sim

import (
	"maps"
	"strings"

	stepped "github.com/quotad/quotad/chaos/lab/node"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/peer"
)

// opening is a node's attempt to open its region's store, by which nobody stands yet.
type opening struct {
	heard   quantity.StoreTime                 // from its mates
	told    map[store.Shard]quantity.StoreTime // what its store had told it
	unheard int                                // how many replies of the store were lost before
}

// asksToOpen is what a node that is about to open its store hears from its mates, and from the other
// regions. The attempt is noted: it may take effect although its reply is lost. Of one before only if
// a reply was lost since.
func (n *node) asksToOpen(b store.Beginning) (told store.Told, answers []peer.StoreAnswer) {
	r, now := n.r, opening{n.shownToMates(), maps.Clone(n.told), n.r.store.unheard()}
	if last := len(r.openings) - 1; last >= 0 && r.openings[last].unheard == now.unheard {
		r.openings = r.openings[:last]
	}
	r.openings = append(r.openings, now)
	for _, m := range n.reaches() {
		answers = append(answers, m.live.Answer())
	}
	return store.Told{Shown: now.heard, Confirmed: b.Confirm != nil && n.confirmed(*b.Confirm)}, answers
}

// confirmed has the other nodes of this node's region confirm what it found of their store, as far as
// it reaches them.
func (n *node) confirmed(c store.Confirmation) bool {
	var by []string
	for _, m := range n.r.nodes {
		if n.heardBy(m) && m.live.Confirms(c) {
			by = append(by, m.name[strings.IndexByte(m.name, '/')+1:])
		}
	}
	return len(c.Without(by)) == 0
}

// reaches returns a node of each other region that answers this one at once.
func (n *node) reaches() (all []*node) {
	for _, r := range n.w.regions {
		to := n.target(r.name)
		if r != n.r && to.live != nil && n.w.now >= to.paused && n.w.wires[n.r.index][r.index].cut == 0 &&
			n.w.wires[r.index][n.r.index].cut == 0 {
			all = append(all, to)
		}
	}
	return all
}

// knownOpening returns the latest time of a shard that was surely known to whoever opened the
// store.
func (r *region) knownOpening(by *node, shard store.Shard) quantity.StoreTime {
	if len(r.openings) == 0 {
		return max(by.told[shard], by.shownToMates())
	}
	known := quantity.StoreTime(0)
	for i, o := range r.openings {
		if at := max(o.told[shard], o.heard); i == 0 || at < known {
			known = at
		}
	}
	return known
}

// shownToMates returns the latest time that the region's store has shown to those other nodes of
// the region that this node reaches. They answer at once.
func (n *node) shownToMates() (latest quantity.StoreTime) {
	for _, m := range n.r.nodes {
		if n.heardBy(m) {
			latest = max(latest, m.live.Shown())
		}
	}
	return latest
}

// copies has the other nodes of this node's region keep what it has seen of use, or nodes of other regions
// if it has none.
func (n *node) copies() {
	mates := map[copies.Mate]*stepped.Stepped{}
	for _, m := range n.r.nodes {
		if m != n {
			mates[copies.Mate{Region: n.r.name, Address: m.name}] = nil
			if n.heardBy(m) {
				mates[copies.Mate{Region: n.r.name, Address: m.name}] = m.live
			}
		}
	}
	if len(mates) == 0 {
		for _, m := range n.reaches() {
			mates[copies.Mate{Region: m.r.name, Address: m.name}] = m.live
		}
	}
	n.live.CopyTo(mates)
}

// lives reports whether a life of a node, 0: any, is not over. Gossip takes a few seconds to know it.
func (w *world) lives(name string, life uint64) bool {
	for _, r := range w.regions {
		for _, n := range r.nodes {
			if n.live != nil && n.name == name && (life == 0 || life == uint64(n.life)) {
				return true
			}
		}
	}
	return false
}

// heardBy reports whether another node of this node's region answers it at once.
func (n *node) heardBy(m *node) bool {
	return m != n && m.live != nil && n.w.now >= m.paused && n.alone == 0 && m.alone == 0
}
