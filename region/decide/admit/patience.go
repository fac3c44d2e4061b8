package admit

import (
	"cmp"
	"context"
	"time"

	"github.com/quotad/quotad/region/decide/queue"
)

// waitOf returns how long a request waits, if its caller's context does not end before. It is never
// less than the store may take to answer.
func (l *Limiter) waitOf(q *Request) time.Duration {
	return max(cmp.Or(q.Wait, l.wait), l.deadline)
}

// answerWithin has the request decided before the deadline of ctx.
func (f *Flow) answerWithin(ctx context.Context) {
	if deadline, given := ctx.Deadline(); given {
		f.answering = min(queue.AnswerBefore, deadline.Sub(f.limiter.config.On.Now())/2)
		f.expires = deadline.Add(-f.answering)
		f.hurry()
	}
}

// hurry shortens the request's wait to what its caller waits, if that is known.
func (f *Flow) hurry() {
	if !f.expires.IsZero() && f.expires.Before(f.way.Until) {
		f.way.WaitUntil(f.expires, f.answering)
	}
}

// extend has the request wait for the store from now on, as long as a request may.
func (f *Flow) extend() {
	f.way.Ask = f.way.Waits(f.limiter.config.On.Now(), f.limiter.waitOf(&f.request))
	f.hurry()
}

// expired reports whether the request's time is over for its caller.
func (f *Flow) expired() bool {
	return !f.expires.IsZero() && !f.limiter.config.On.Now().Before(f.expires)
}
