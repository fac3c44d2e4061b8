package admit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// Check decides a request and charges it if it is admitted, unless it is a question. The error is an
// *invalid.Field, an *Overload, ErrClosed, or that of ctx. A request may be charged although its caller
// gave up.
func (l *Limiter) Check(ctx context.Context, q Request) (Decision, error) {
	begun := time.Now()
	d, err := l.check(ctx, q, true)
	if err == nil {
		l.metrics.took(time.Since(begun))
	}
	return d, err
}

// Peek returns the decision that Check would make, and charges nothing.
func (l *Limiter) Peek(ctx context.Context, q Request) (Decision, error) {
	return l.check(ctx, q, false)
}

func (l *Limiter) check(ctx context.Context, q Request, commit bool) (Decision, error) {
	if commit && !q.Question && l.tenure.Rules().Prefetches && q.Validate() == nil {
		if d, paid := l.spendAtOnce(&q); paid {
			return l.sign(d), nil
		}
	}
	f, err := l.Begin(q, commit)
	if err != nil {
		return Decision{}, err
	}
	f.answerWithin(ctx)
	if f.next == Asks {
		handedOver(ctx)
	}
	return f.finish(ctx)
}

// bounded returns a TooManyLimits if more limits apply to a request than one script call may decide.
func bounded(all []*rules.Applied) error {
	var b algorithms.Batch
	for _, a := range all {
		b.Counts(a.Target.Terms.Kind)
	}
	if b.Load() <= algorithms.MaxLoad {
		return nil
	}
	return TooManyLimits{invalid.Fieldf("descriptors", "meet %d limits with a load of %d (a sliding_window_log is 4, "+
		"a sliding_window_counter 3, a leaky_bucket 2, others 1); send fewer at a time, so that it is at most %d",
		len(all), b.Load(), algorithms.MaxLoad)}
}

// onceKey returns the key under which the store remembers that a request was charged. The key
// covers the id, the cost and the buckets: a request with the same id that differs in cost or
// buckets is another request, and so is one of another kind.
func onceKey(id string, cost quantity.Units, all []*rules.Applied, kind ...string) string {
	h := sha256.New()
	part := func(s string) { fmt.Fprintf(h, "%d:%s,", len(s), s) }
	part(id)
	part(strconv.FormatInt(int64(cost), 10))
	for _, a := range all {
		part(a.Target.Key)
	}
	for _, k := range kind {
		part(k)
	}
	return store.OnceKey(store.ShardOf(all[0].Target.Key), hex.EncodeToString(h.Sum(nil)))
}

// watched returns the first limit of a request to which shadow limits alone apply, which deny
// nothing; nil: another limit applies.
func (w *way) watched() *rules.Applied {
	for _, a := range w.Applied {
		if !a.Limit.Shadow {
			return nil
		}
	}
	return w.Applied[0]
}
