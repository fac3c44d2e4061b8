package sim

import "github.com/quotad/quotad/quantity"

// shownToMates returns the latest time that the region's store has shown to those other nodes of the
// region that this node reaches. They answer at once.
func (n *node) shownToMates() (latest quantity.StoreTime) {
	for _, m := range n.r.nodes {
		if m == n || m.live == nil || n.w.now < m.paused || n.alone > 0 || m.alone > 0 {
			continue
		}
		latest = max(latest, m.live.Shown())
	}
	return latest
}
