package rights

import (
	"context"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/store"
)

// Assign runs calls about rights that this node assigns to Envoys, one on each of the buckets. A call
// that the store did not answer has StatusUnknown.
func (e *Engine) Assign(ctx context.Context, buckets []*exchange.Bucket,
	calls []algorithms.Assign) []algorithms.Assigned {
	answers := make([]algorithms.Assigned, len(calls))
	for i := range answers {
		answers[i].Head = unanswered
	}
	inPieces(ctx, e.moves, calls, e.config.Store.Assign,
		func(from int, results []store.Result[algorithms.Assigned]) {
			for i, res := range results {
				e.noticed(ctx, buckets[from+i], res.Err, res.Value.State, res.Value.Now)
				answers[from+i] = told(res, answers[from+i])
			}
		})
	return answers
}

// ObserveEnvoys adds to the next report what Envoys said that they admitted and denied of a bucket.
// state is what the store showed of it at a store time.
func (e *Engine) ObserveEnvoys(b *exchange.Bucket, state algorithms.State, now quantity.StoreTime,
	admitted, denied quantity.Units) {
	if len(b.Entitlements) < 2 {
		return
	}
	e.mu.Lock()
	o := e.observing(b)
	if o.Now == 0 {
		o.State, o.Now = state, now
	}
	o.Admitted = min(o.Admitted+admitted, algorithms.MaxUnits)
	o.Denied = min(o.Denied+denied, algorithms.MaxUnits)
	e.mu.Unlock()
	e.drains()
}
