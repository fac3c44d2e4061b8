package region

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// CheckBatch decides several requests at the same time, each as Check does and each for itself; the error is that of the
// first that has one. They take their places in the queue in one go, and need a goroutine of their own only where more
// than the store is waited for: then there are at most as many as requests.
func (n *Node) CheckBatch(ctx context.Context, all []Request) ([]Decision, error) {
	for i := range all {
		if err := all[i].Validate(); err != nil {
			return nil, err
		}
	}
	b := batch{node: n, begun: time.Now(), requests: all, all: make([]inBatch, len(all)), decisions: make([]Decision, len(all))}
	for i, q := range all {
		b.all[i].way = n.prepare(q, true)
		if err := bounded(b.all[i].way.applied); err != nil {
			return nil, err
		}
	}
	b.handOver(ctx)
	b.collect(ctx)
	b.others.Wait()
	if p := b.panicked.Load(); p != nil {
		panic(*p)
	}
	for i := range b.all {
		if err := b.all[i].err; err != nil {
			return nil, err
		}
	}
	return b.decisions, nil
}

// batch is several requests on their way.
type batch struct {
	node      *Node
	begun     time.Time
	requests  []Request
	all       []inBatch
	decisions []Decision
	others    sync.WaitGroup         // requests that more than the store is waited for
	panicked  atomic.Pointer[string] // one of them did
}

// inBatch is one of them.
type inBatch struct {
	way    waiting
	answer chan answered // nil: nothing is waited for
	said   answered
	err    error
}

// handOver has the store asked what it is to be asked.
func (b *batch) handOver(ctx context.Context) {
	n := b.node
	asked, place := make([]waiting, 0, len(b.all)), make([]int, 0, len(b.all))
	gone := make([]atomic.Bool, len(b.all))
	for i := range b.all {
		one := &b.all[i]
		if len(one.way.applied) == 0 || b.spans(one.way) {
			continue
		}
		var done bool
		if one.said, one.err, done = n.withoutAsking(one.way); done {
			continue
		}
		one.answer = make(chan answered, 1)
		one.way.answer, one.way.gone = one.answer, &gone[i]
		asked, place = append(asked, one.way), append(place, i)
	}
	n.batcher.enqueueAll(ctx, asked, func(i int, err error) {
		one := &b.all[place[i]]
		one.answer, one.err = nil, err
	})
}

// spans says whether a request is decided shard by shard.
func (b *batch) spans(w waiting) bool { return len(w.rules.Shards) > 1 && len(w.parts()) > 1 }

// collect waits for the answers, and makes them decisions.
func (b *batch) collect(ctx context.Context) {
	n := b.node
	late := make(chan time.Time) // closed once the time of all is over
	if len(b.all) > 0 {
		stop := time.AfterFunc(time.Until(b.all[len(b.all)-1].way.until), func() { close(late) })
		defer stop.Stop()
	}
	for i := range b.all {
		one, q := &b.all[i], b.requests[i]
		switch {
		case len(one.way.applied) == 0:
			b.decisions[i] = n.sign(Decision{Allowed: true, Reason: NoLimit})
			continue
		case b.spans(one.way):
			b.apart(i, func() (Decision, error) { return n.check(ctx, q, true) })
			continue
		case one.answer != nil:
			one.said, one.err = n.await(ctx, one.way, one.answer, late)
		}
		if one.err == nil && (one.said.lost() || len(one.way.lacking(one.said)) > 0 || len(n.unused(one.way, one.said)) > 0) {
			b.apart(i, func() (Decision, error) { return n.conclude(ctx, q, one.way, one.said, nil) })
			continue
		}
		b.decide(i, func() (Decision, error) { return n.conclude(ctx, q, one.way, one.said, one.err) })
	}
}

func (b *batch) decide(i int, by func() (Decision, error)) {
	b.decisions[i], b.all[i].err = by()
	b.node.metrics.took(time.Since(b.begun))
}

// apart decides a request in a goroutine of its own.
func (b *batch) apart(i int, by func() (Decision, error)) {
	b.others.Go(func() {
		defer func() {
			if p := recover(); p != nil { // it is the caller's to answer for
				said := fmt.Sprintf("%v\n%s", p, debug.Stack())
				b.panicked.Store(&said)
			}
		}()
		b.decide(i, by)
	})
}
