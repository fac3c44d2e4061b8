// Package panics keeps one bad message from ending a process: who handles what comes from outside
// defers Recover. A panic is then counted by the place where it happened, and logged with its
// stack.
package panics

import (
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// logEvery is how often a place is logged at most: whoever found a message that panics can
	// send it again and again.
	logEvery = time.Minute
	// largestStack bounds the stack that is logged, in bytes.
	largestStack = 8 << 10
	// largestValue bounds what is logged of the panic's value, in bytes: it may hold what
	// somebody sent.
	largestValue = 256
)

// Counter counts the panics that were recovered from. A nil Counter recovers too, and neither
// counts nor logs. Safe for concurrent use.
type Counter struct {
	log *slog.Logger

	mu     sync.Mutex
	places map[string]*place
}

type place struct {
	count  uint64
	logged time.Time
}

// New returns a Counter that logs to log.
func New(log *slog.Logger) *Counter {
	return &Counter{log: log, places: map[string]*place{}}
}

// Recover ends a panic of the function that defers it: `defer c.Recover("gossip")`. It must be
// deferred itself, not called by what is deferred. There are as many places as the code names, so
// where must be a constant.
func (c *Counter) Recover(where string) {
	v := recover()
	if v == nil || c == nil {
		return
	}
	if c.note(where, time.Now()) && c.log != nil {
		stack := debug.Stack()
		c.log.Error("recovered from a panic: please report it; further ones of this place are "+
			"logged once a minute", "where", where, "panic", cut(fmt.Sprint(v), largestValue),
			"stack", cut(string(stack), largestStack))
	}
}

// note counts a panic, and says whether it is to be logged.
func (c *Counter) note(where string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.places[where]
	if p == nil {
		p = &place{}
		c.places[where] = p
	}
	p.count++
	if p.count > 1 && now.Sub(p.logged) < logEvery {
		return false
	}
	p.logged = now
	return true
}

// Counts returns the panics since the start, by place.
func (c *Counter) Counts() map[string]uint64 {
	counts := map[string]uint64{}
	if c == nil {
		return counts
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for where, p := range maps.All(c.places) {
		counts[where] = p.count
	}
	return counts
}

func cut(s string, most int) string {
	if len(s) > most {
		return s[:most] + " ..."
	}
	return s
}
