package process

import (
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/store"
)

// Clock is an embedded Redis in this process, and its clock: the processes of
// one machine read one clock, and no redis-server can be told another. Safe for
// concurrent use.
type Clock struct {
	// URL is what a node is given for its Redis.
	URL string

	ahead atomic.Int64 // of the wall clock, ns
}

// startClock starts an embedded Redis that shows the time of this machine.
func startClock(scope Scope) (*Clock, error) {
	c := &Clock{}
	s, err := store.StartMovable(func() time.Duration { return time.Duration(c.ahead.Load()) })
	if err != nil {
		return nil, err
	}
	scope.Cleanup(func() { _ = s.Close() }) // it keeps nothing
	c.URL = s.URL + "/0"
	return c, nil
}

// Move moves the clock forward, or back if by is below zero, and returns how far
// it is ahead of this machine's now.
func (c *Clock) Move(by time.Duration) time.Duration {
	return time.Duration(c.ahead.Add(int64(by)))
}
