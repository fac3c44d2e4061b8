package node

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/quotad/quotad/region/decide/queue"
)

// routines are the goroutines of a node that is stepped by hand. One runs at a time, until it ends
// or waits, and its driver says when it goes on. Not safe for concurrent use.
type routines struct {
	elapsed func() time.Duration
	after   func(d time.Duration, do func()) // calls do after a time, unless the node ends before
	running *routine                         // nil: none
	waiting []*routine
	ended   bool
}

// routine is one of them.
type routine struct {
	next  func() (struct{}, bool) // runs it until it waits or ends
	stop  func()
	yield func(struct{}) bool
	// answer is what it waits for besides a time; nil: only for the time.
	answer <-chan queue.Answer
	waits  int // how often it has waited
}

// killed is what a routine panics with whose node has ended.
type killed struct{}

// run calls f, which may wait, and returns when f waits for the first time or has returned.
func (all *routines) run(f func()) {
	one := &routine{}
	one.next, one.stop = iter.Pull(func(yield func(struct{}) bool) {
		one.yield = yield
		defer func() {
			if p := recover(); p != nil && p != (killed{}) {
				panic(p)
			}
		}()
		f()
	})
	all.goOn(one)
}

// goOn lets a routine run until it ends or waits.
func (all *routines) goOn(one *routine) {
	before := all.running
	all.running = one
	_, waits := one.next()
	all.running = before
	if waits && all.ended {
		one.stop()
		return
	}
	if waits {
		all.waiting = append(all.waiting, one)
	}
	for _, other := range all.waiting {
		if len(other.answer) > 0 {
			other.answer = nil
			all.wake(other, 0)
		}
	}
}

// wake has a routine go on after a time, if it has not gone on before.
func (all *routines) wake(one *routine, after time.Duration) {
	waits := one.waits
	all.after(max(after, 0), func() {
		if one.waits != waits || !slices.Contains(all.waiting, one) {
			return
		}
		all.waiting = slices.DeleteFunc(all.waiting, func(other *routine) bool { return other == one })
		all.goOn(one)
	})
}

// wait has the running routine wait for a time at most, and for an answer if it is not nil.
func (all *routines) wait(d time.Duration, answer <-chan queue.Answer) {
	one := all.running
	if one == nil {
		panic("a node waits for its store outside of Run")
	}
	one.waits++
	one.answer = answer
	all.wake(one, d)
	if !one.yield(struct{}{}) {
		panic(killed{})
	}
	one.answer = nil
}

// end ends all that wait, as the end of a process does: nothing of them is carried out any more.
func (all *routines) end() {
	all.ended = true
	for _, one := range all.waiting {
		one.stop()
	}
	all.waiting = nil
}

// Now implements queue.Executor.
func (all *routines) Now() time.Time { return time.Time{}.Add(all.elapsed()) }

// Go implements queue.Executor. f begins when what runs now waits or has ended.
func (all *routines) Go(f func()) { all.after(0, func() { all.run(f) }) }

// Yield implements queue.Executor.
func (all *routines) Yield() {}

// Sleep implements queue.Executor.
func (all *routines) Sleep(d time.Duration) { all.wait(d, nil) }

// Await implements queue.Executor.
func (all *routines) Await(_ context.Context, answer <-chan queue.Answer, _ <-chan struct{}, until time.Time) (a queue.Answer, heard bool) {
	if len(answer) == 0 && until.After(all.Now()) {
		all.wait(until.Sub(all.Now()), answer)
	}
	select {
	case a = <-answer:
		return a, true
	default:
		return a, false
	}
}
