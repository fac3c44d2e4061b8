package admit

import (
	"context"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// RefundLast gives back units of what was charged last of the buckets that a list meets, whoever it
// was charged for, and at most what counts there as used: of windows in the present cell, of a log
// by its newest entries. Turns of a leaky_bucket are not given back. It is not idempotent. The
// error is an *invalid.Field or that of the store.
func (l *Limiter) RefundLast(ctx context.Context, domain string, list List) (Refunded, error) {
	q := Request{Domain: domain, Lists: []List{list}}
	if err := q.Validate(); err != nil {
		return Refunded{}, err
	}
	w := l.prepare(q, true, nil)
	if err := bounded(w.Applied); err != nil {
		return Refunded{}, err
	}
	return l.receipts.refundLast(ctx, &w, list.Cost)
}

// refundLast gives back up to a cost of each limit that applies to a request.
func (s *Receipts) refundLast(ctx context.Context, w *way, cost quantity.Units) (Refunded, error) {
	out := Refunded{Charges: make([]RefundedCharge, len(w.Applied))}
	for _, p := range w.Parts() {
		c := algorithms.Refund{Fence: algorithms.Fence{Epoch: w.Rules.Epoch}, Cost: cost,
			Once: store.OnceKey(p.Shard, "none")}
		for _, i := range p.Of {
			a := w.Applied[i]
			target := a.Target.Target
			target.ExistsUntil = s.rights.ExistsUntil(a.Bucket.ID)
			c.Charges = append(c.Charges, algorithms.Charge{Target: target})
		}
		done, err := s.store.Refund(ctx, c)
		for n, i := range p.Of {
			a := w.Applied[i]
			a.Held.Forget(max(done.Now, s.store.Latest()))
			if err != nil {
				s.rights.Lose(ctx, a.Bucket, err)
				continue
			}
			out.Charges[i] = s.refunded(a.Limit.Name, done.Charges[n], false)
		}
		if err != nil {
			return Refunded{}, err
		}
	}
	return out, nil
}

// Buckets returns the buckets that a list meets, for the audit log.
func (l *Limiter) Buckets(domain string, list List) (all []policy.BucketRef) {
	met, _ := l.tenure.Rules().AppendList(nil, domain, list.Entries)
	for _, a := range met {
		if ref, err := policy.ParseBucketID(policy.BucketID(a.Bucket.ID)); err == nil {
			all = append(all, ref)
		}
	}
	return slices.Clip(all)
}
