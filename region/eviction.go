package region

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/memory/store"
)

// evictionEvery is how often the node asks the store whether it evicts keys when its memory is
// full.
const evictionEvery = time.Minute

// storeMemory is what is known of the memory of the region's Redis. Only the goroutine that reads
// it from the store uses versions and due.
type storeMemory struct {
	size     atomic.Pointer[store.Size] // as last read; nil: not known yet
	eviction atomic.Pointer[string]     // maxmemory-policy, as last read; nil: not known yet
	versions map[string]bool            // those that are logged, at most maxVersions
	due      time.Time                  // when it is read again
}

// policy returns the store's maxmemory-policy as last read, empty while it is not known.
func (m *storeMemory) policy() string {
	if found := m.eviction.Load(); found != nil {
		return *found
	}
	return ""
}

// watchEviction warns while the region's Redis may evict keys when its memory is full, once for
// each change of that. Each such key is a bucket whose use starts again from nothing. watchEviction
// does nothing if evictionEvery has not passed since it last read.
func (n *Node) watchEviction(ctx context.Context, now time.Time) {
	if now.Before(n.memory.due) {
		return
	}
	n.memory.due = now.Add(evictionEvery)
	n.readSize(ctx)
	n.readVersions(ctx)
	found, err := n.config.Store.Eviction(ctx)
	if err != nil {
		n.log.Debug("the store's maxmemory-policy is not known", "err", err)
		return
	}
	if before := n.memory.eviction.Swap(&found); before != nil && *before == found {
		return
	}
	if found != store.NoEviction && found != "" {
		n.log.Warn("the store may forget buckets when its memory is full, and limits would not hold: set maxmemory-policy noeviction",
			"maxmemory-policy", found)
	}
}

// readSize reads how many keys and bytes the region's Redis holds, for the metrics.
func (n *Node) readSize(ctx context.Context) {
	size, err := n.config.Store.Size(ctx)
	if err != nil {
		n.log.Debug("the store's size is not known", "err", err)
		return
	}
	n.memory.size.Store(&size)
}
