package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The phases of a load.
const (
	warmingUp int32 = iota
	counting
	over
)

// afterError is how long a caller waits after a failed call, so that a server that is gone is not
// called without a pause.
const afterError = 10 * time.Millisecond

// load is a number of callers, each of which makes its next call when the last one was answered.
// Calls that end while the phase is counting are counted. Failures and denials are counted until
// the last call has ended, because a call that was never answered ends after the round.
type load struct {
	*Bench
	subject *subject
	round   int

	phase   atomic.Int32
	callers sync.WaitGroup
	one     chan struct{} // closed when a call has ended while the phase is counting
	ended   sync.Once     // closes it

	mu    sync.Mutex
	tally tally
}

// tally is what callers saw.
type tally struct {
	took    []time.Duration // of each counted call
	decided int64           // requests of counted calls that were answered
	// Requests of all calls that ended after the warm-up: of those asked, so many were refused for want of
	// time, were not answered in time, failed otherwise, or were denied.
	asked, refused, late, failed, denied int64
	first                                error // that was counted
}

func (t *tally) add(o *tally) {
	t.took = append(t.took, o.took...)
	t.decided += o.decided
	t.asked, t.denied = t.asked+o.asked, t.denied+o.denied
	t.refused, t.late, t.failed = t.refused+o.refused, t.late+o.late, t.failed+o.failed
	if t.first == nil {
		t.first = o.first
	}
}

// begin starts the callers. They end once the phase is over, or ctx ends.
func (l *load) begin(ctx context.Context) {
	for i := range l.Callers {
		l.callers.Go(func() { l.caller(ctx, i) })
	}
}

// count has calls counted for d, and until one has ended: on a busy machine none may end within d.
func (l *load) count(ctx context.Context, d time.Duration) {
	l.phase.Store(counting)
	rest(ctx, d)
	select {
	case <-l.one:
	case <-ctx.Done():
	}
}

// wait waits for the callers to end, and returns what they saw.
func (l *load) wait() tally {
	l.callers.Wait()
	return l.tally
}

func (l *load) caller(ctx context.Context, number int) {
	choose := chooser(l.Keys, l.Among, uint64(l.round), uint64(number))
	prepare, keys := l.prepare(l.subject, number), make([]int, l.Batch)
	var seen tally
	for l.phase.Load() != over && ctx.Err() == nil {
		for i := range keys {
			keys[i] = choose()
		}
		next := prepare(keys)
		begun := time.Now()
		denied, err := timed(ctx, next)
		took := time.Since(begun)
		phase := l.phase.Load()
		seen.note(phase, int64(l.Batch), took, denied, err)
		if phase == counting {
			l.ended.Do(func() { close(l.one) })
		}
		if err != nil {
			time.Sleep(afterError)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.add(&seen)
}

// note counts a call that ended in a phase.
func (t *tally) note(phase int32, requests int64, took time.Duration, denied int64, err error) {
	if phase == warmingUp {
		return
	}
	t.asked += requests
	if err != nil {
		switch {
		case isRefusal(err):
			t.refused += requests
		case errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded:
			t.late += requests
		default:
			t.failed += requests
		}
		if t.first == nil {
			t.first = err
		}
		return
	}
	t.denied += denied
	if phase == counting {
		t.took = append(t.took, took)
		t.decided += requests
	}
}

// isRefusal reports whether a server said that it had no time to decide, and when to ask again.
func isRefusal(err error) bool {
	return errors.Is(err, errUndecided) || status.Code(err) == codes.Unavailable &&
		slices.ContainsFunc(status.Convert(err).Details(), func(detail any) bool {
			_, is := detail.(*errdetails.RetryInfo)
			return is
		})
}

// timed makes a call, which ends after callTimeout at the latest.
func timed(ctx context.Context, c call) (denied int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c(ctx)
}
