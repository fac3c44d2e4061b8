package region

import (
	"log/slog"
	"sync"
	"time"
)

// matesPatience is how long after the start, and after a change, gossip may see fewer nodes of the
// region than are configured before the node warns. Nodes are started one after the other, and
// replaced.
const matesPatience = time.Minute

// mates compares the nodes of this region that gossip sees with the number that is configured. Safe
// for concurrent use.
type mates struct {
	mu     sync.Mutex
	seen   int       // nodes of the region when last counted, this one among them
	since  time.Time // since when as many are seen
	warned int       // the number that was last warned of; 0: none
}

// saw takes how many nodes gossip sees, this one among them. It warns once about each number that
// is not the configured one: at once of too many, and of too few if it stays so for matesPatience.
func (m *mates) saw(seen, configured int, log *slog.Logger) {
	m.mu.Lock()
	defer m.mu.Unlock()
	configured = max(configured, 1)
	now := time.Now()
	if seen != m.seen {
		m.seen, m.since = seen, now
	}
	switch {
	case seen == configured:
		m.warned = 0
		return
	case seen == m.warned || seen < configured && now.Sub(m.since) < matesPatience:
		return
	}
	m.warned = seen
	if seen > configured {
		log.Warn("gossip sees more nodes of this region than its configuration says: what they "+
			"used may be had again after a loss of the store, and without the store each of them "+
			"has too large a part; set nodes to what the region has, on all of them",
			"nodes", configured, "seen", seen)
		return
	}
	log.Warn("gossip sees fewer nodes of this region than its configuration says: after a loss of "+
		"the store this node waits for what the others used; start them, or set nodes to what the "+
		"region has, on all of them", "nodes", configured, "seen", seen)
}

// count returns how many nodes of the region gossip saw last, this one among them.
func (m *mates) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(m.seen, 1)
}
