package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
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

	mu    sync.Mutex
	tally tally
}

// tally is what callers saw.
type tally struct {
	took    []time.Duration // of each counted call
	decided int64           // requests of counted calls that were answered
	// Requests of all calls that ended after the warm-up: asked of them failed, or were denied.
	asked, failed, denied int64
	first                 error // that was counted
}

func (t *tally) add(o *tally) {
	t.took = append(t.took, o.took...)
	t.decided += o.decided
	t.asked, t.failed, t.denied = t.asked+o.asked, t.failed+o.failed, t.denied+o.denied
	if t.first == nil {
		t.first = o.first
	}
}

// begin starts the callers. They end once the phase is over, or ctx ends.
func (l *load) begin(ctx context.Context) {
	for i := range l.Callers {
		conn := l.subject.conns[i%len(l.subject.conns)]
		l.callers.Go(func() { l.caller(ctx, quotadv1.NewQuotaServiceClient(conn), i) })
	}
}

// wait waits for the callers to end, and returns what they saw.
func (l *load) wait() tally {
	l.callers.Wait()
	return l.tally
}

func (l *load) caller(ctx context.Context, client quotadv1.QuotaServiceClient, number int) {
	choose := chooser(l.Keys, l.Among, uint64(l.round), uint64(number))
	var seen tally
	for l.phase.Load() != over && ctx.Err() == nil {
		ask := l.next(client, choose)
		begun := time.Now()
		denied, err := ask(ctx)
		took := time.Since(begun)
		seen.note(l.phase.Load(), int64(l.Batch), took, denied, err)
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
		t.failed += requests
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

// next prepares the next call. The call returns how many of its requests were denied.
func (l *load) next(client quotadv1.QuotaServiceClient,
	choose func() int) func(context.Context) (int64, error) {
	if l.Batch == 1 {
		m := request(choose())
		return func(ctx context.Context) (int64, error) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			got, err := client.Check(ctx, m)
			return denials(got.GetDecision()), err
		}
	}
	m := &quotadv1.CheckBatchRequest{Requests: make([]*quotadv1.CheckRequest, l.Batch)}
	for i := range m.Requests {
		m.Requests[i] = request(choose())
	}
	return func(ctx context.Context) (int64, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		got, err := client.CheckBatch(ctx, m)
		return denials(got.GetDecisions()...), err
	}
}

// denials counts the decisions that do not admit their request.
func denials(all ...*quotadv1.Decision) (denied int64) {
	for _, d := range all {
		if !d.GetAllowed() {
			denied++
		}
	}
	return denied
}
