package receipts

import (
	"cmp"
	"context"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	receiptv1 "github.com/quotad/quotad/proto/receipt/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// Refunded is the outcome of a refund, charge by charge.
type Refunded struct {
	Charges  []RefundedCharge
	Repeated bool // the receipt had been refunded before; this is the outcome of that refund
}

// RefundedCharge is the outcome of the refund of one charge.
type RefundedCharge struct {
	Limit  string
	Units  quantity.Units // units given back
	Reason string         // why none were given back; empty if some were
}

// Refund gives back what a decision charged. A second refund of the same receipt gives nothing
// more. Units of a cell that no longer counts, and turns of a leaky_bucket, are not given back. The
// error is an *invalid.Field, ErrRefused, or that of the store.
func (s *Receipts) Refund(ctx context.Context, receipt string) (Refunded, error) {
	r, err := s.open(receipt)
	if err != nil {
		return Refunded{}, err
	}
	return s.refund(ctx, r)
}

// refund gives back the cost of a receipt that was opened.
func (s *Receipts) refund(ctx context.Context, r *receiptv1.Receipt) (Refunded, error) {
	current := s.config.Rules()
	calls, places, err := refunds(current, r)
	if err != nil {
		return Refunded{}, err
	}
	out, gives := Refunded{Charges: make([]RefundedCharge, len(r.GetCharges()))}, false
	for i, c := range calls {
		for k := range c.Charges {
			c.Charges[k].ExistsUntil = s.config.Rights.ExistsUntil(places[i][k].bucket)
		}
		done, err := s.config.Store.Refund(ctx, c)
		for _, at := range places[i] {
			current.ForgetDenials(at.bucket, max(done.Now, s.config.Store.Latest()))
		}
		if err != nil { // if the receipt is sent again, the refund goes on from here
			for _, at := range places[i] {
				if b := current.Find(at.bucket); b != nil {
					s.config.Rights.Lose(ctx, b, err)
				}
			}
			return Refunded{}, err
		}
		out.Repeated = out.Repeated || done.Repeated
		for k, back := range done.Charges {
			gives = gives || back.Units > 0 && !done.Repeated
			out.Charges[places[i][k].index] = s.refunded(places[i][k].limit, back, done.Repeated)
		}
	}
	// A shard of short windows forgets a refund before the others do. It gives nothing more then.
	out.Repeated = out.Repeated && !gives
	return out, nil
}

// place says where a charge is in its receipt.
type place struct {
	index  int
	limit  string
	bucket string // the bucket's id
}

// refunds returns the calls that refund the charges of a receipt, one for each shard, and the
// places of their charges.
func refunds(current *rules.Rules, r *receiptv1.Receipt) (calls []algorithms.Refund,
	places [][]place, err error) {
	for i, charge := range r.GetCharges() {
		id := string(charge.GetBucket())
		ref, err := policy.ParseBucketID(policy.BucketID(id))
		if err != nil {
			return nil, nil, invalid.Fieldf("receipt", "names a bucket that cannot be read")
		}
		taken := algorithms.Charge{Target: algorithms.Target{Key: current.Key(id)},
			Cell: quantity.Cell(charge.GetCell())}
		if b := current.Find(id); b != nil {
			taken.Terms = b.Terms(current.Region)
		}
		shard := store.ShardOf(taken.Key)
		n := slices.IndexFunc(calls,
			func(c algorithms.Refund) bool { return store.ShardOf(c.Receipt) == shard })
		if n < 0 {
			n = len(calls)
			c := algorithms.Refund{Fence: algorithms.Fence{Epoch: current.Epoch},
				Receipt: store.RefundKey(shard, r.GetId()),
				Once:    store.OnceKey(shard, "none"),
				At:      quantity.StoreTime(cmp.Or(charge.GetAtUs(), r.GetAtUs())),
				Cost:    quantity.Units(r.GetCost())}
			if once := r.GetOnce(); once != "" {
				c.Once = store.OnceKeyIn(shard, once)
			}
			calls, places = append(calls, c), append(places, nil)
		}
		calls[n].Charges = append(calls[n].Charges, taken)
		places[n] = append(places[n], place{i, ref.Name, id})
	}
	return calls, places, nil
}

// refunded describes and counts the outcome of one charge.
func (s *Receipts) refunded(limit string, back algorithms.Back, repeated bool) RefundedCharge {
	if back.Units == 0 && back.Refusal == algorithms.NotRefused { // a reset or a refill came before
		back.Refusal = algorithms.NoLongerWeighs
	}
	if !repeated {
		s.units.WithLabelValues(limit).Add(float64(back.Units))
	}
	return RefundedCharge{Limit: limit, Units: back.Units, Reason: back.Refusal.String()}
}

// GiveBack gives back units of what a client took, or of what a decision charged: 1 to as many as
// were charged. A receipt gives back once, by GiveBack or by Refund. The error is as Refund's.
func (s *Receipts) GiveBack(ctx context.Context, receipt string,
	units quantity.Units) (Refunded, error) {
	r, err := s.open(receipt)
	if err != nil {
		return Refunded{}, err
	}
	if units < 1 || int64(units) > r.GetCost() {
		return Refunded{}, invalid.Fieldf("units", "must be 1 to the %d units that the receipt is for", r.GetCost())
	}
	r.Cost = int64(units)
	done, err := s.refund(ctx, r)
	if err == nil && !done.Repeated && len(done.Charges) > 0 {
		s.back.Add(float64(done.Charges[0].Units))
	}
	return done, err
}
