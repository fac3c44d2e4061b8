package admit

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// closures keeps until when limits have buckets that are closed after a loss of the store's data.
// There are as many as limits of which requests were answered Recovering. Safe for concurrent use.
type closures struct {
	mu sync.Mutex
	of map[string]time.Time // by the name of the limit
}

// saw notes that a bucket of a limit is closed until a time of the node's clock.
func (c *closures) saw(limit string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]time.Time{}
	}
	if until.After(c.of[limit]) {
		c.of[limit] = until
	}
}

// Closed is a limit with buckets that are closed after a loss of the store's data.
type Closed struct {
	Limit string
	// Until is when the last of those that requests asked for is opened, if nothing else happens.
	Until time.Time
}

// Closed returns the limits that have closed buckets, by name.
func (l *Limiter) Closed() (all []Closed) {
	c, now := &l.accounts.closures, l.config.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for limit, until := range c.of {
		if until.After(now) {
			all = append(all, Closed{limit, until})
		} else {
			delete(c.of, limit)
		}
	}
	slices.SortFunc(all, func(a, b Closed) int { return cmp.Compare(a.Limit, b.Limit) })
	return all
}
