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

// Clock is an embedded Redis in this process whose clock can be moved. The processes of one machine
// share one clock, and a redis-server cannot be given another. Safe for concurrent use.
type Clock struct {
	// URL is the address of the Redis for a node file.
	URL string

	ahead atomic.Int64 // of the wall clock, ns
}

// If a table has a large whole number as a key, the Lua of the embedded Redis makes it an array up
// to that number. MaxArrayIndex is the largest key for which it does so.
func init() { lua.MaxArrayIndex = 1 << 16 }

// startClock starts an embedded Redis that shows this machine's time until Move is called. Its time
// stands still within a script.
func startClock(scope Scope) (*Clock, error) {
	c, redis := &Clock{}, miniredis.NewMiniRedis()
	redis.ClockTTL(true) // without it no key would ever expire
	if err := redis.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start an embedded Redis: %w", err)
	}
	scope.Cleanup(redis.Close)
	redis.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
		// Only before a script: a script's own calls also come here, and hold the lock.
		if strings.HasPrefix(command, "EVAL") {
			redis.SetTime(time.Now().Add(time.Duration(c.ahead.Load())))
		}
		return false
	})
	c.URL = "redis://" + redis.Addr() + "/0"
	return c, nil
}

// Move moves the clock forward, or back if by is negative. It returns how far the clock is now
// ahead of this machine's.
func (c *Clock) Move(by time.Duration) time.Duration {
	return time.Duration(c.ahead.Add(int64(by)))
}
