package process

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
)

// Clock is an embedded Redis in this process, and its clock: the processes of
// one machine read one clock, and no redis-server can be told another. Safe for
// concurrent use.
type Clock struct {
	// URL is what a node is given for its Redis.
	URL string

	ahead atomic.Int64 // of the wall clock, ns
}

// The embedded Redis would make a table with a large whole number for a key an
// array that reaches up to it.
func init() { lua.MaxArrayIndex = 1 << 16 }

// startClock starts an embedded Redis that shows the time of this machine. Its
// time stands still within a script.
func startClock(scope Scope) (*Clock, error) {
	c, redis := &Clock{}, miniredis.NewMiniRedis()
	redis.ClockTTL(true) // or nothing would ever expire
	if err := redis.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start an embedded Redis: %w", err)
	}
	scope.Cleanup(redis.Close)
	redis.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
		if strings.HasPrefix(command, "EVAL") { // what a script calls comes by here, too, and holds the lock
			redis.SetTime(time.Now().Add(time.Duration(c.ahead.Load())))
		}
		return false
	})
	c.URL = "redis://" + redis.Addr() + "/0"
	return c, nil
}

// Move moves the clock forward, or back if by is below zero, and returns how far
// it is ahead of this machine's now.
func (c *Clock) Move(by time.Duration) time.Duration {
	return time.Duration(c.ahead.Add(int64(by)))
}
