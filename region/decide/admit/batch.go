package admit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/local"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/store"
)

// maxTogether bounds the requests of a batch that queue at a time. The next ones follow when these
// are answered. A round trip carries about as many decisions, so more of them would only fill the
// queue, be refused for want of time, and make others wait.
const maxTogether = 128

// CheckBatch decides several requests, each by itself as Check does, in parts of maxTogether. A
// request that is wrong is denied as InvalidRequest, one that the store has no time for is
// Decision.Undecided, and the others are decided all the same. The error is that of the first request
// in the list that has one: ErrClosed, or that of ctx, after which no further part is begun. The requests of a part enter the queue together, in their order,
// and each has the whole time of a request from then on. A request gets a goroutine of its own only
// if it waits for more than the store, or spans shards; later parts do not wait for it.
func (l *Limiter) CheckBatch(ctx context.Context, all []Request) ([]Decision, error) {
	b := batch{limiter: l, begun: time.Now(), requests: all, flows: make([]*Flow, len(all)),
		decisions: make([]Decision, len(all)), errs: make([]error, len(all))}
	for from := 0; from < len(all); from += maxTogether {
		if err := ctx.Err(); err != nil {
			b.errs[from] = err
			break
		}
		b.part(ctx, from, min(from+maxTogether, len(all)))
	}
	b.others.Wait()
	if p := b.panicked.Load(); p != nil {
		panic(*p)
	}
	for _, err := range b.errs {
		if err != nil {
			return nil, err
		}
	}
	return b.decisions, nil
}

// AskTogether asks the store about all requests whose next step is Asks, in as few round trips as
// possible, and waits for the answers. A nil flow is no request. It leaves out the requests that
// span shards: left is true for these, and the caller asks about them one by one.
func (l *Limiter) AskTogether(ctx context.Context, all []*Flow) (left []bool) {
	left = make([]bool, len(all))
	asked, of := make([]queue.Ask, 0, len(all)), make([]*Flow, 0, len(all))
	for i, f := range all {
		if f == nil || f.next != Asks {
			continue
		}
		if left[i] = f.way.Spans(); left[i] {
			continue
		}
		if a, denied := f.remembered(); denied {
			f.answered(a, nil)
			continue
		}
		asked, of = append(asked, f.way.Ask), append(of, f)
	}
	said, errs := l.queue.DecideAll(ctx, asked)
	for i, f := range of {
		f.answered(said[i], errs[i])
	}
	return left
}

// batch is several requests that are decided together.
type batch struct {
	limiter   *Limiter
	begun     time.Time
	requests  []Request
	flows     []*Flow // nil: the request is wrong, and its decision is made
	decisions []Decision
	errs      []error
	claimed   bool                   // what it spends without the store is claimed
	others    sync.WaitGroup         // requests in goroutines of their own
	panicked  atomic.Pointer[string] // the panic of one of these, with its stack
}

// part decides the requests from one up to another, which is not of the part. Those that need a
// goroutine of their own may not be decided yet when it returns.
func (b *batch) part(ctx context.Context, from, to int) {
	l := b.limiter
	for i := from; i < to; i++ {
		f, err := l.Begin(b.requests[i], true)
		if problem, wrong := errors.AsType[*invalid.Field](err); wrong {
			f = nil
			b.decisions[i] = l.sign(Decision{Reason: InvalidRequest, Problem: problem})
		}
		if f != nil {
			f.answerWithin(ctx)
		}
		b.flows[i] = f
	}
	apart := l.AskTogether(ctx, b.flows[from:to])
	b.claim(from, to)
	for i := from; i < to; i++ {
		switch f := b.flows[i]; {
		case f == nil: // it is decided
		case apart[i-from] || f.next == Waits:
			b.apart(ctx, i)
		default:
			b.decide(ctx, i)
		}
	}
}

// claim claims what a part is to spend without the store, once some of it is, and with it what the
// further parts will if their server is out of reach.
func (b *batch) claim(from, to int) {
	var all [][]local.Charge
	for _, f := range b.flows[from:to] {
		if f != nil && f.next == Decided && f.err == nil && f.said.Err != nil {
			all = append(all, f.way.localCharges())
		}
	}
	if len(all) == 0 || b.claimed {
		return
	}
	b.claimed = true
	l := b.limiter
	for _, q := range b.requests[to:] {
		if q.Validate() != nil {
			continue
		}
		w := l.prepare(q, true, nil)
		if !w.needsNoStore(q.Domain) && l.queue.Tripped(store.ShardOf(w.Applied[0].Target.Key)) {
			all = append(all, w.localCharges())
		}
	}
	l.local.Claim(all)
}

func (b *batch) decide(ctx context.Context, i int) {
	d, err := b.flows[i].finish(ctx)
	if full, is := errors.AsType[*queue.Overload](err); is {
		d, err = b.flows[i].undecided(full), nil
	} else {
		b.limiter.metrics.took(time.Since(b.begun))
	}
	b.decisions[i], b.errs[i] = d, err
}

// undecided answers a request of a batch that the store has no time for.
func (f *Flow) undecided(full *queue.Overload) Decision {
	l := f.limiter
	d := Decision{Reason: QueueFull, Undecided: true, RetryAfter: full.Retry}
	for _, a := range f.way.Applied {
		if !a.Limit.Shadow {
			d = l.describe(d, a)
			break
		}
	}
	d.Epoch = f.way.Rules.Newest
	return l.sign(d)
}

// apart decides a request in a goroutine of its own.
func (b *batch) apart(ctx context.Context, i int) {
	b.others.Go(func() {
		defer func() {
			if p := recover(); p != nil { // CheckBatch panics with it in the caller's goroutine
				said := fmt.Sprintf("%v\n%s", p, debug.Stack())
				b.panicked.Store(&said)
			}
		}()
		b.decide(ctx, i)
	})
}
