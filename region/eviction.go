package region

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/store"
)

// evictionEvery is how often the store is asked whether it forgets keys when its memory is full.
const evictionEvery = time.Minute

// storeMemory is what is known of the memory of the region's Redis. due is of the goroutine that looks.
type storeMemory struct {
	size     atomic.Pointer[store.Size] // as last read; nil: not known yet
	eviction atomic.Pointer[string]     // maxmemory-policy, as last read; nil: not known yet
	due      time.Time                  // when it is asked for again
}

// policy returns the store's maxmemory-policy as last read, empty while it is not known.
func (m *storeMemory) policy() string {
	if found := m.eviction.Load(); found != nil {
		return *found
	}
	return ""
}

// watchEviction warns, once for each change, while the region's Redis may forget keys when its memory is full: each such
// key is a bucket whose use starts again from nothing. Its caller calls it now and then.
func (n *Node) watchEviction(ctx context.Context, now time.Time) {
	if now.Before(n.memory.due) {
		return
	}
	n.memory.due = now.Add(evictionEvery)
	n.readSize(ctx)
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
