package door

import (
	"slices"
	"time"
)

// Calls of a caller have their turns in the order in which they came, as long as the first has
// waited for less than 1/calmParts of its time. After that, more calls come than can be answered,
// and the caller's newest call is next: it has most of its time left.
const calmParts = 3

// waiter is what turns know of a call.
type waiter struct {
	caller string
	came   time.Time
	until  time.Time     // until then it waits
	turn   chan struct{} // closed when it has its turn; nil: it never waited
	waits  bool
}

func (w *waiter) asWaiter() *waiter { return w }

// turns are the calls that wait. Callers take turns. Their user locks.
type turns[C interface{ asWaiter() *waiter }] struct {
	waiting int
	callers map[string]*line[C]
	order   []*line[C] // of those in callers, in the order of their turns
}

// line holds the calls of a caller that wait.
type line[C interface{ asWaiter() *waiter }] struct {
	all  []C // in the order in which they came; some have gone
	gone int // of these
}

// comes makes a call wait.
func (t *turns[C]) comes(call C) {
	w := call.asWaiter()
	of := t.callers[w.caller]
	if of == nil {
		of = &line[C]{}
		if t.callers == nil {
			t.callers = map[string]*line[C]{}
		}
		t.callers[w.caller] = of
		t.order = append(t.order, of)
	}
	of.all = append(of.all, call)
	t.waiting++
	w.waits, w.turn = true, make(chan struct{})
}

// next lets in the calls whose turn it is and that find room. in reports whether a call finds room,
// and takes it in. next asks about one call of each caller, and again after each call that came in.
func (t *turns[C]) next(now time.Time, in func(C) bool) {
	for asked := 0; asked < len(t.order); asked++ {
		of := t.order[0]
		t.order = append(t.order[1:], of)
		if call := of.best(now); in(call) {
			w := call.asWaiter()
			t.leaves(w)
			close(w.turn)
			asked = -1
		}
	}
}

// best returns the call of a caller that is next.
func (l *line[C]) best(now time.Time) C {
	for !l.all[0].asWaiter().waits {
		l.all = l.all[1:]
		l.gone--
	}
	first := l.all[0]
	if w := first.asWaiter(); now.Sub(w.came) <= w.until.Sub(w.came)/calmParts {
		return first
	}
	for !l.all[len(l.all)-1].asWaiter().waits {
		l.all = l.all[:len(l.all)-1]
		l.gone--
	}
	return l.all[len(l.all)-1]
}

// leaves takes out a call, and reports whether it waited.
func (t *turns[C]) leaves(w *waiter) bool {
	if !w.waits {
		return false
	}
	w.waits = false
	t.waiting--
	of := t.callers[w.caller]
	of.gone++
	switch {
	case len(of.all) == of.gone:
		delete(t.callers, w.caller)
		t.order = slices.DeleteFunc(t.order, func(one *line[C]) bool { return one == of })
	case of.gone > len(of.all)/2:
		of.all = slices.DeleteFunc(of.all, func(one C) bool { return !one.asWaiter().waits })
		of.gone = 0
	}
	return true
}
