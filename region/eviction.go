package region

import (
	"context"
	"time"

	"github.com/quotad/quotad/region/store"
)

// evictionEvery is how often the store is asked whether it forgets keys when its memory is full.
const evictionEvery = time.Minute

// watchEviction warns, once for each change, while the region's Redis may forget keys when its memory is full: each such
// key is a bucket whose use starts again from nothing. Its caller calls it now and then.
func (n *Node) watchEviction(ctx context.Context, now time.Time) {
	if now.Before(n.evictionDue) {
		return
	}
	n.evictionDue = now.Add(evictionEvery)
	n.readSize(ctx)
	found, err := n.store.Eviction(ctx)
	if err != nil {
		n.log.Debug("the store's maxmemory-policy is not known", "err", err)
		return
	}
	if before := n.eviction.Swap(&found); before != nil && *before == found {
		return
	}
	if found != store.NoEviction && found != "" {
		n.log.Warn("the store may forget buckets when its memory is full, and limits would not hold: set maxmemory-policy noeviction",
			"maxmemory-policy", found)
	}
}

// readSize reads how many keys and bytes the region's Redis holds, for the metrics.
func (n *Node) readSize(ctx context.Context) {
	size, err := n.store.Size(ctx)
	if err != nil {
		n.log.Debug("the store's size is not known", "err", err)
		return
	}
	n.size.Store(&size)
}

// evictionFound returns the store's maxmemory-policy as last read, empty while it is not known.
func (n *Node) evictionFound() string {
	if found := n.eviction.Load(); found != nil {
		return *found
	}
	return ""
}
