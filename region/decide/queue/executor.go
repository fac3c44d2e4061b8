package queue

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Executor is what a node's decisions run on: a clock and goroutines. Those of a node are the
// process's (Goroutines). A simulator has its own, so that it says how long each thing takes and what
// comes first. Safe for concurrent use.
type Executor interface {
	// Now returns the time by a clock that is never set.
	Now() time.Time
	// Go runs f beside its caller.
	Go(f func())
	// Yield lets others run that are ready to.
	Yield()
	// Sleep returns after a time.
	Sleep(d time.Duration)
	// Await returns the answer when it comes. heard is false if it has not come when the clock shows
	// until, when ctx ends, or when ended is closed.
	Await(ctx context.Context, answer <-chan Answer, ended <-chan struct{}, until time.Time) (a Answer, heard bool)
}

// Goroutines is the Executor of a node that runs by itself. The zero value is ready.
type Goroutines struct {
	timers sync.Pool // of stopped ones, for further waits
}

// Now implements Executor.
func (*Goroutines) Now() time.Time { return time.Now() }

// Go implements Executor.
func (*Goroutines) Go(f func()) { go f() }

// Yield implements Executor.
func (*Goroutines) Yield() { runtime.Gosched() }

// Sleep implements Executor.
func (*Goroutines) Sleep(d time.Duration) { time.Sleep(d) }

// Await implements Executor.
func (g *Goroutines) Await(ctx context.Context, answer <-chan Answer, ended <-chan struct{}, until time.Time) (a Answer, heard bool) {
	timer, spare := g.timers.Get().(*time.Timer)
	if spare {
		timer.Reset(time.Until(until))
	} else {
		timer = time.NewTimer(time.Until(until))
	}
	select {
	case a = <-answer:
		heard = true
	case <-timer.C:
	case <-ctx.Done():
	case <-ended:
	}
	timer.Stop()
	g.timers.Put(timer)
	return a, heard
}
