package region

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/rules"
	"github.com/quotad/quotad/region/store"
)

// Check decides a request and charges it if it is admitted. The error is a *FieldError, ErrClosed, or that of ctx; a
// request whose caller gives up may still be charged.
func (n *Node) Check(ctx context.Context, q Request) (Decision, error) {
	begun := time.Now()
	d, err := n.check(ctx, q, true)
	if err == nil {
		n.metrics.took(time.Since(begun))
	}
	return d, err
}

// Peek says what Check would answer, and charges nothing.
func (n *Node) Peek(ctx context.Context, q Request) (Decision, error) {
	return n.check(ctx, q, false)
}

func (n *Node) check(ctx context.Context, q Request, commit bool) (Decision, error) {
	if err := q.Validate(); err != nil {
		return Decision{}, err
	}
	w := n.prepare(q, commit)
	if len(w.applied) == 0 {
		return n.sign(Decision{Allowed: true, Reason: NoLimit}), nil
	}
	if err := bounded(w.applied); err != nil {
		return Decision{}, err
	}
	handedOver(ctx)
	a, err := n.decide(ctx, w)
	return n.conclude(ctx, q, w, a, err)
}

// prepare finds the limits of a request.
func (n *Node) prepare(q Request, commit bool) waiting {
	r := n.rules.Load()
	all := r.Match(q.Domain, q.Descriptors)
	w := waiting{rules: r, applied: all, cost: q.Cost, commit: commit, caller: q.Caller, until: time.Now().Add(n.deadline)}
	if commit && q.ID != "" && len(all) > 0 {
		w.once = onceKey(q, all)
	}
	return w
}

// conclude turns the store's first answer into a decision, for which it may have to be asked again.
func (n *Node) conclude(ctx context.Context, q Request, w waiting, a answered, err error) (Decision, error) {
	all, commit := w.applied, w.commit
	for range all { // each of its buckets may be lost
		if err != nil || !a.lost() || !n.recover(ctx, w, a) {
			break
		}
		a, err = n.decide(ctx, w)
	}
	if err == nil {
		if closed := n.unused(w, a); len(closed) > 0 && n.openUnused(ctx, w, closed, a.decided.Now) {
			a, err = n.decide(ctx, w)
		}
	}
	if err == nil && commit && n.borrow(ctx, w, a) {
		w.until = time.Now().Add(n.deadline)
		a, err = n.decide(ctx, w)
	}
	var full *queueFull
	switch {
	case errors.As(err, &full):
		return n.sign(n.overflow(all, full.retry)), nil
	case err != nil:
		return Decision{}, err
	case !a.ok():
		n.metrics.storeFailures.Inc()
		return n.sign(n.withoutStore(q, all, commit)), nil
	}
	d := n.judge(q.Cost, all, a)
	n.metrics.sentAgain(a.decided)
	if commit && d.Allowed && q.Receipt {
		d.Receipt = n.receipt(q, all, a)
	}
	return n.sign(d), nil
}

// bounded refuses a request to which more limits apply than one script may decide at a time.
func bounded(all []rules.Applied) error {
	var b algorithms.Batch
	for _, a := range all {
		b.Counts(a.Target.Terms.Kind)
	}
	if b.Load() <= algorithms.MaxLoad {
		return nil
	}
	return &FieldError{"descriptors", fmt.Sprintf("meet %d limits with a load of %d (a sliding_window_log is 4, "+
		"a sliding_window_counter 3, a leaky_bucket 2, others 1); send fewer at a time, so that it is at most %d",
		len(all), b.Load(), algorithms.MaxLoad)}
}

// onceKey returns the key under which a request is charged once: another request by the same name is another request.
func onceKey(q Request, all []rules.Applied) string {
	h := sha256.New()
	part := func(s string) { fmt.Fprintf(h, "%d:%s,", len(s), s) }
	part(q.ID)
	part(strconv.FormatInt(q.Cost, 10))
	for _, a := range all {
		part(a.Target.Key)
	}
	return store.OnceKey(store.ShardOf(all[0].Target.Key), hex.EncodeToString(h.Sum(nil)))
}

// overflow denies a request that the store has no time for, unless only shadow limits apply to it.
func (n *Node) overflow(all []rules.Applied, retry time.Duration) Decision {
	for _, a := range all {
		if !a.Limit.Shadow {
			return n.describe(Decision{Reason: QueueFull, RetryAfter: retry}, a)
		}
	}
	return n.describe(Decision{Allowed: true, Reason: QueueFull}, all[0])
}

// decide has the store decide a request, in one step if all its limits are in one shard.
func (n *Node) decide(ctx context.Context, w waiting) (answered, error) {
	if len(w.rules.Shards) > 1 {
		if parts := w.parts(); len(parts) > 1 {
			return n.decideParts(ctx, w, parts)
		}
	}
	return n.ask(ctx, w)
}

// ask has the store decide a request whose limits are in one shard. What the store says after the request's time is over
// counts for nothing, though it may have charged the request. The error is a *queueFull if the store answers, but has no
// time for this request.
func (n *Node) ask(ctx context.Context, w waiting) (answered, error) {
	if a, err, done := n.withoutAsking(w); done {
		return a, err
	}
	answer := make(chan answered, 1)
	w.answer, w.gone = answer, &atomic.Bool{}
	if err := n.batcher.enqueue(ctx, w); err != nil {
		return answered{}, err
	}
	late := time.NewTimer(time.Until(w.until))
	defer late.Stop()
	return n.await(ctx, w, answer, late.C)
}

// withoutAsking says how a request ends for which the store is not to be asked; done: it is not.
func (n *Node) withoutAsking(w waiting) (a answered, err error, done bool) {
	if n.breakers.tripped(store.ShardOf(w.applied[0].Target.Key)) {
		return answered{err: errOutOfReach}, nil, true
	}
	select {
	case <-n.closed:
		return answered{}, ErrClosed, true
	default:
	}
	if time.Until(w.until) <= 0 { // before it was sent: that says nothing of the store
		return answered{}, n.batcher.outwaited(), true
	}
	return answered{}, nil, false
}

// await waits for the answer to a request that was handed over, until its time is over.
func (n *Node) await(ctx context.Context, w waiting, answer <-chan answered, late <-chan time.Time) (answered, error) {
	select {
	case a := <-answer:
		if isQueueFull(a.err) {
			return answered{}, a.err
		}
		return a, nil
	case <-late:
		w.gone.Store(true)
		now := time.Now()
		if n.breakers.answers(store.ShardOf(w.applied[0].Target.Key), w.until.Add(-n.deadline), now, n.deadline,
			n.batcher.wakes.starved(now, n.deadline)) {
			return answered{}, n.batcher.outwaited()
		}
		return answered{err: errLate}, nil
	case <-ctx.Done():
		w.gone.Store(true)
		return answered{}, ctx.Err()
	case <-n.closed:
		return answered{}, ErrClosed
	}
}

var errLate = errors.New("the store does not answer in time")

// ErrClosed says that the node has been closed.
var ErrClosed = errors.New("the node is closed")

// borrow waits for rights to be borrowed for a request that was denied, if every limit that denied it says so
// (on_exhausted: borrow) and the region might ever serve it. It says whether deciding once more may help.
func (n *Node) borrow(ctx context.Context, w waiting, a answered) bool {
	lacking := w.lacking(a)
	return len(lacking) > 0 && n.engine.borrow(ctx, lacking, w.cost, a.decided.Now)
}

// lacking returns the buckets that rights are to be borrowed of for a request; none: it waits for nothing.
func (w waiting) lacking(a answered) (lacking []lack) {
	if !a.ok() || a.decided.Answers[a.index].Admitted {
		return nil
	}
	for i, v := range a.decided.Answers[a.index].Verdicts {
		l := w.applied[i].Limit
		switch {
		case v.Retry == 0 || l.Shadow:
			continue
		case l.OnExhausted != policy.ExhaustedBorrow || w.cost > w.applied[i].Most():
			return nil
		}
		lacking = append(lacking, lack{bucket: w.applied[i].Bucket, state: a.decided.Buckets[i]})
	}
	return lacking
}

// sign completes what every decision of this node carries.
func (n *Node) sign(d Decision) Decision {
	d.Node, d.Region = n.config.Node, n.config.Region
	d.Sequence = n.sequence.Add(1)
	n.metrics.decided(d)
	return d
}

// describe names the limit that decided.
func (n *Node) describe(d Decision, a rules.Applied) Decision {
	d.Limit, d.Algorithm, d.LimitUnits, d.Window = a.Limit.Name, a.Limit.Algorithm, a.Limit.Limit, a.Limit.Window
	d.Entitlement = a.Entitlement()
	d.Degraded = n.degraded(a.Bucket)
	return d
}

// judge turns the store's answer into a decision.
func (n *Node) judge(cost int64, all []rules.Applied, a answered) Decision {
	answer := a.decided.Answers[a.index]
	decider, best := 0, int64(math.MinInt64)
	var shadowed []string
	var delay int64
	for i, v := range answer.Verdicts {
		shadow := all[i].Limit.Shadow
		if !shadow {
			delay = max(delay, v.Delay)
		}
		if shadow && v.Retry != 0 {
			shadowed = append(shadowed, all[i].Limit.Name)
		}
		w := weight(answer.Admitted, v, cost > all[i].Most())
		first := i == 0 || all[decider].Limit.Shadow && !shadow
		if first || shadow == all[decider].Limit.Shadow && w > best {
			decider, best = i, w
		}
	}
	state, verdict := a.decided.Buckets[decider], answer.Verdicts[decider]
	length := all[decider].Target.Terms.Cell
	d := n.describe(Decision{Allowed: answer.Admitted, Reason: WithinLimit, Remaining: verdict.Remaining,
		ResetAfter: microseconds((state.Cell+1)*length - a.at(decider)), Cell: state.Cell, At: a.at(decider),
		Share: max(state.Share, 0), Shadowed: shadowed, Delay: microseconds(delay), Repeated: a.decided.Repeated}, all[decider])
	if !answer.Admitted {
		d.Reason, d.RetryAfter = OverLimit, microseconds(verdict.Retry)
		if state.Shut > a.at(decider) {
			d.Reason = Recovering
		}
		if verdict.Retry < 0 {
			d.Reason, d.RetryAfter = ExceedsRegionCapacity, -1
		}
		if cost > all[decider].Most() {
			d.Reason = Never
		}
	}
	return d
}

// weight orders limits by what they say about a request: of an admitted one, the one that leaves least decided; of a
// denied one, the one that can never admit it, else the one that denies longest.
func weight(admitted bool, v algorithms.Verdict, never bool) int64 {
	switch {
	case admitted:
		return -v.Remaining
	case never:
		return math.MaxInt64
	case v.Retry < 0:
		return math.MaxInt64 - 1
	}
	return v.Retry
}

// withoutStore decides as the limits say for when the store cannot be used: one that says deny denies, then each
// that says local must have room in this node's part.
func (n *Node) withoutStore(q Request, all []rules.Applied, commit bool) Decision {
	d := n.describe(Decision{Allowed: true, Reason: StoreFailureAllowed}, all[0])
	for _, a := range all {
		if !a.Limit.Shadow && a.Limit.OnStoreFailure == policy.StoreFailureDeny {
			return n.describe(Decision{Reason: StoreFailure}, a)
		}
	}
	type charge struct {
		rules.Applied
		window int64
	}
	var charged []charge
	now, local := n.now(), inLocalPart(all)
	if commit && len(local) > 1 { // what one limit denies makes no record, nor claim, of the others
		for _, a := range local {
			if m := n.fallback.take(a, q.Cost, false, now); !m.room {
				return n.deniedLocally(a, m)
			}
		}
	}
	for _, a := range local {
		m := n.fallback.take(a, q.Cost, commit, now)
		if !m.room {
			for _, c := range charged {
				n.fallback.giveBack(c.Applied, q.Cost, c.window)
			}
			return n.deniedLocally(a, m)
		}
		if commit {
			charged = append(charged, charge{a, m.window})
		}
		if d.Reason != StoreFailureLocal || m.left < d.Remaining {
			d = n.describe(Decision{Allowed: true, Reason: StoreFailureLocal, Remaining: m.left, ResetAfter: m.reset}, a)
		}
	}
	n.metrics.local.Add(float64(q.Cost) * float64(len(charged)))
	return d
}

// inLocalPart returns those limits of a request of which this node has a part to spend without the store.
func inLocalPart(all []rules.Applied) (local []rules.Applied) {
	for _, a := range all {
		if !a.Limit.Shadow && a.Limit.OnStoreFailure == policy.StoreFailureLocal {
			local = append(local, a)
		}
	}
	return local
}

// deniedLocally is the decision where this node's part has no room.
func (n *Node) deniedLocally(a rules.Applied, m metered) Decision {
	denied := Decision{Reason: StoreFailureLocal, Remaining: m.left, ResetAfter: m.reset, RetryAfter: m.reset}
	if m.never {
		denied.RetryAfter = -1
	}
	return n.describe(denied, a)
}

func microseconds(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
