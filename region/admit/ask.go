package admit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/store"
)

// decide asks the store to decide a request: in one script call if all its limits are in one shard,
// else shard by shard.
func (l *Limiter) decide(ctx context.Context, w waiting) (answered, error) {
	if w.spans() {
		return l.decideParts(ctx, w, w.parts())
	}
	return l.ask(ctx, w)
}

// ask asks the store to decide a request whose limits are in one shard. An answer that comes after
// the request's time is over is ignored, though the store may have charged the request. The error
// is a *queueFull if the store answers others but has no time for this request.
func (l *Limiter) ask(ctx context.Context, w waiting) (answered, error) {
	if a, err, done := l.withoutAsking(w); done {
		return a, err
	}
	t := l.tickets.take()
	w.answer, w.gone = t.answer, &t.gone
	if err := l.lanes.enqueue(ctx, w); err != nil {
		return answered{}, err
	}
	select {
	case a := <-t.answer: // the caller made the round trip itself
		l.tickets.Put(t)
		return received(a)
	default:
	}
	t.late.Reset(time.Until(w.until))
	a, heard, err := l.await(ctx, w, t.answer, t.late.C)
	t.late.Stop()
	if heard {
		l.tickets.Put(t)
	}
	return a, err
}

// ticket is what one request waits with for the store's answer.
type ticket struct {
	answer chan answered // has room for the answer
	gone   atomic.Bool   // waiting.gone
	late   *time.Timer   // stopped
}

// tickets are those of requests that were answered, for further ones. One that was given up may
// still be answered, and is not used again. The zero value is ready. Safe for concurrent use.
type tickets struct{ sync.Pool }

func (all *tickets) take() *ticket {
	if t, ok := all.Get().(*ticket); ok {
		return t
	}
	t := &ticket{answer: make(chan answered, 1), late: time.NewTimer(time.Hour)}
	t.late.Stop()
	return t
}

// received takes the batcher's answer apart: the error is a *queueFull.
func received(a answered) (answered, error) {
	if isQueueFull(a.err) {
		return answered{}, a.err
	}
	return a, nil
}

// withoutAsking returns the outcome of a request for which the store is not to be asked. done is
// false if the store is to be asked.
func (l *Limiter) withoutAsking(w waiting) (a answered, err error, done bool) {
	if l.breakers.tripped(store.ShardOf(w.applied[0].Target.Key)) {
		return answered{err: errOutOfReach}, nil, true
	}
	if isClosed(l.config.Closed) {
		return answered{}, ErrClosed, true
	}
	// The time was over before the request was sent, which says nothing about the store.
	if time.Until(w.until) <= 0 {
		return answered{}, l.lanes.lane(&w).outwaited(), true
	}
	return answered{}, nil, false
}

// await waits for the answer to a request that was enqueued, until late fires, ctx ends or the node
// is closed. It says whether it has heard the answer.
func (l *Limiter) await(ctx context.Context, w waiting, answer <-chan answered,
	late <-chan time.Time) (a answered, heard bool, err error) {
	select {
	case a = <-answer:
		a, err = received(a)
		return a, true, err
	case <-late:
		w.gone.Store(true)
		now := time.Now()
		shard, starved := store.ShardOf(w.applied[0].Target.Key), l.lanes.wakes.starved(now, l.deadline)
		if l.breakers.answers(shard, w.until.Add(-w.waits), now, l.deadline, starved) {
			return answered{}, false, l.lanes.lane(&w).outwaited()
		}
		return answered{err: errLate}, false, nil
	case <-ctx.Done():
		w.gone.Store(true)
		return answered{}, false, ctx.Err()
	case <-l.config.Closed:
		return answered{}, false, ErrClosed
	}
}
