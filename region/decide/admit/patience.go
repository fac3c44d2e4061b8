package admit

import (
	"cmp"
	"context"
	"time"
)

const (
	// DefaultWait is how long a request waits for its turn whose caller names no time.
	DefaultWait = time.Second
	// answerBefore is how long before the caller's deadline a request is decided, so that the answer
	// arrives in time: Envoy waits for 20 ms by default. Of a caller who has less than twice that
	// left it is half of what is left.
	answerBefore = 5 * time.Millisecond
	// answeredParts is the part of that time for which an answer is waited for that is on its way:
	// all but 1/answeredParts.
	answeredParts = 5
)

// waitUntil has the request be asked about until a time, and an answer that is on its way then be
// waited for a little longer: all but a fifth of the time that is left for answering.
func (w *waiting) waitUntil(until time.Time, answering time.Duration) {
	w.until, w.ends = until, until.Add(answering-answering/answeredParts)
}

// waits has the request wait from now on, for so long.
func (w waiting) waits(most time.Duration) waiting {
	w.came = time.Now()
	w.waitUntil(w.came.Add(most), answerBefore)
	return w
}

// waitOf returns how long a request waits, if its caller's context does not end before. It is never
// less than the store may take to answer.
func (l *Limiter) waitOf(q *Request) time.Duration {
	return max(cmp.Or(q.Wait, l.wait), l.deadline)
}

// answerWithin has the request decided before the deadline of ctx.
func (f *Flow) answerWithin(ctx context.Context) {
	if deadline, given := ctx.Deadline(); given {
		f.answering = min(answerBefore, time.Until(deadline)/2)
		f.expires = deadline.Add(-f.answering)
		f.hurry()
	}
}

// hurry shortens the request's wait to what its caller waits, if that is known.
func (f *Flow) hurry() {
	if !f.expires.IsZero() && f.expires.Before(f.way.until) {
		f.way.waitUntil(f.expires, f.answering)
	}
}

// extend has the request wait for the store from now on, as long as a request may.
func (f *Flow) extend() {
	f.way = f.way.waits(f.limiter.waitOf(&f.request))
	f.hurry()
}

// expired reports whether the request's time is over for its caller.
func (f *Flow) expired() bool { return !f.expires.IsZero() && !time.Now().Before(f.expires) }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
