package admit

import (
	"context"
	"time"
)

// answerBefore is how long before the caller's deadline a request is decided, so that the answer
// arrives in time: Envoy waits for 20 ms by default. Of a caller who has less than twice that left
// it is half of what is left.
const answerBefore = 5 * time.Millisecond

// answerWithin has the request decided before the deadline of ctx: without the store, if that has
// not answered by then.
func (f *Flow) answerWithin(ctx context.Context) {
	if deadline, given := ctx.Deadline(); given {
		f.expires = deadline.Add(-min(answerBefore, time.Until(deadline)/2))
		f.way.expire(f.expires)
	}
}

// expire shortens the wait for the store so that it ends at a time.
func (w *waiting) expire(at time.Time) {
	if over := w.until.Sub(at); over > 0 {
		w.until, w.waits, w.hurried = at, max(w.waits-over, 0), true
	}
}

// extend has the request wait for the store from now on, as long as a request may.
func (f *Flow) extend() {
	f.way.until, f.way.waits = time.Now().Add(f.limiter.deadline), f.limiter.deadline
	if !f.expires.IsZero() {
		f.way.expire(f.expires)
	}
}

// expired says whether the request's time is over for its caller.
func (f *Flow) expired() bool { return !f.expires.IsZero() && !time.Now().Before(f.expires) }
