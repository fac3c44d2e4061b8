package rights

import (
	"context"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// Assign runs calls about rights that this node assigns to Envoys, one on each of the buckets. A
// call that the store did not answer has StatusUnknown.
func (e *Engine) Assign(ctx context.Context, buckets []*exchange.Bucket,
	calls []algorithms.Assign) []algorithms.Assigned {
	answers := make([]algorithms.Assigned, len(calls))
	for i := range answers {
		answers[i].Head = unanswered
	}
	inPieces(ctx, e.moves, calls, e.config.Store.Assign,
		func(i int, res store.Result[algorithms.Assigned]) {
			e.noticed(ctx, buckets[i], res.Err, res.Value.State, res.Value.Now)
			answers[i] = told(res, answers[i])
			e.showed(buckets[i], res.Value.Head, res.Value.State)
		})
	return answers
}

// ObserveEnvoys tells what Envoys admit and deny of a bucket, in thousandths of a unit a second.
func (e *Engine) ObserveEnvoys(b *exchange.Bucket, admitted, denied quantity.MilliRate) {
	if !e.shared(b) {
		return
	}
	e.mu.Lock()
	e.observing(b).Flow = exchange.Flow{Told: true, Admitted: admitted, Denied: denied}
	e.mu.Unlock()
	e.drains()
}

// Allotments returns the most rights that this node may assign of some buckets, by bucket id, as of
// the last tick: other nodes and regions need the rest. Of a bucket that is not listed the node may
// assign all that it gets. Nobody may change the result.
func (e *Engine) Allotments() map[string]quantity.Units {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.allotments
}

// shared reports whether other regions, or other nodes of this one, draw on a bucket.
func (e *Engine) shared(b *exchange.Bucket) bool {
	return len(b.Entitlements) > 1 || e.config.Options.Nodes > 1
}

// ObserveAhead passes on what the store showed when it was charged ahead for Envoys. That charge is
// no demand.
func (e *Engine) ObserveAhead(applied []*rules.Applied, d algorithms.Decided) {
	for i, a := range applied {
		e.showed(a.Bucket, d.Head, d.Buckets[i])
		e.seen.noteHashed(a.Bucket.ID, a.Hash, &a.Target.Terms, d.Buckets[i], d.Now)
	}
}

// showed passes on to the machine what the store showed of a bucket.
func (e *Engine) showed(b *exchange.Bucket, head algorithms.Head, state algorithms.State) {
	if head.Status != algorithms.StatusOK || !e.shared(b) {
		return
	}
	e.mu.Lock()
	o := e.observing(b)
	if head.Now >= o.Now {
		o.State, o.Now = state, head.Now
	}
	e.mu.Unlock()
	e.drains()
}

// allotted returns allotments by bucket id.
func allotted(all []exchange.Allotment) map[string]quantity.Units {
	by := make(map[string]quantity.Units, len(all))
	for _, a := range all {
		by[a.Bucket] = a.Rights
	}
	return by
}
