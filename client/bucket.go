package client

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
)

const (
	// exactFor is for how long a bucket is asked about each request after a node said that a limit
	// of it is exact, or that it gives no units to clients at all.
	exactFor = 10 * time.Second
	// refusedFor is for how long a bucket takes no units after a node gave none, or did not answer.
	refusedFor = 100 * time.Millisecond
	// maxUnits is the most units that a message may name.
	maxUnits = 1 << 51
	// generation stands for that of the region's store, which clients do not know.
	generation = 1
)

// Bucket is a handle for requests that meet the same limits. Safe for concurrent use.
type Bucket struct {
	client      *Client
	domain      string
	descriptors map[string]string

	held held.Memory // its chunks carry a *grant, its denials the *Decision
	// takesFrom and exactUntil are times of the client's clock: when it may take units again, and
	// until when it decides nothing from memory.
	takesFrom, exactUntil atomic.Int64
	// admitted and denied are units, to be reported.
	admitted, denied atomic.Int64

	reported time.Duration // when denied units were last reported; under the client's lock
}

// grant is what a chunk of units carries.
type grant struct {
	units    int64
	receipt  string
	decision Decision // to charge them
}

// Allow decides a request of a cost, 1 to 2^51 units, and charges it if it is admitted. If it
// decides from memory it neither waits nor allocates. Otherwise it asks a node; then the error is a
// gRPC status, wrapped.
func (b *Bucket) Allow(ctx context.Context, cost int64) (Decision, error) {
	c := b.client
	if !c.prefetch || cost < 1 {
		return b.ask(ctx, cost)
	}
	now := c.clock.Elapsed()
	if chunk, left, low := b.held.Take(quantity.Units(cost), generation, now); chunk != nil {
		if low {
			c.topUp(b, now)
		}
		return admitted(chunk, left, now), nil
	}
	if d, denied := b.deny(cost, now); denied {
		return d, nil
	}
	d, err := b.ask(ctx, cost)
	if err == nil {
		b.learn(answerOf(d, cost, now, c.clock.Elapsed()))
		c.topUp(b, c.clock.Elapsed())
	}
	return d, err
}

func (b *Bucket) ask(ctx context.Context, cost int64) (Decision, error) {
	return b.client.check(ctx, &quotadv1.CheckRequest{Domain: b.domain,
		Descriptors: b.descriptors, Cost: &cost})
}

// admitted returns the decision on a request that was admitted from a chunk.
func admitted(chunk *held.Chunk, left quantity.Units, now time.Duration) Decision {
	d := chunk.Of.(*grant).decision
	d.Remaining += int64(left)
	d.ResetAfter = time.Duration(chunk.Reset(now)) * time.Microsecond
	d.AtUs, d.FromMemory = int64(chunk.At(now)), true
	return d
}

// deny returns the denial of a request if one is remembered. A cost that the region can never admit
// is asked about.
func (b *Bucket) deny(cost int64, now time.Duration) (Decision, bool) {
	if int64(now) < b.exactUntil.Load() {
		return Decision{}, false
	}
	told, denied, _ := b.held.Deny(quantity.Units(cost), generation, now)
	if !denied {
		return Decision{}, false
	}
	d := *told.Of.(*Decision)
	if cost > d.Entitlement {
		return Decision{}, false
	}
	if b.denied.Load() < maxUnits && b.denied.Add(cost) == cost {
		b.client.hold(b)
	}
	d.RetryAfter = time.Duration(told.Verdict.Retry) * time.Microsecond
	d.ResetAfter = time.Duration(told.State.Reset) * time.Microsecond
	d.AtUs, d.FromMemory = int64(told.Now), true
	return d, true
}

// learn takes in what a node answered. Only what the region's store counted says anything about
// later requests: not what was decided without it, by a node or by the client.
func (b *Bucket) learn(a held.Answer) {
	d := a.Of.(*Decision)
	counted := d.Reason == quotadv1.Reason_REASON_WITHIN_LIMIT ||
		d.Reason == quotadv1.Reason_REASON_OVER_LIMIT
	if counted && d.AtUs > 0 && d.Limit != "" {
		b.held.Learn(a)
	}
}

// answerOf returns the decision on a cost as the memory learns it. Times are of the client's clock:
// before the node was asked, and after it answered.
func answerOf(d Decision, cost int64, asked, heard time.Duration) held.Answer {
	a := held.Answer{Generation: generation, Now: quantity.StoreTime(d.AtUs), Asked: asked,
		Heard: heard, Of: &d, State: algorithms.State{Cell: quantity.Cell(d.Cell),
			Share: quantity.Units(d.Share), Free: quantity.Units(d.Remaining),
			Reset: d.ResetAfter.Microseconds()}}
	if d.Allowed {
		a.Fitted, a.Charged = quantity.Units(cost), quantity.Units(cost)
		return a
	}
	a.Denied, a.Verdict.Retry = quantity.Units(cost), d.RetryAfter.Microseconds()
	a.Ends = a.Now.Add(a.Verdict.Retry) // the node did not say when the cell ends
	return a
}
