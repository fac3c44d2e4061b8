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

// Settled is the outcome of a Settle, charge by charge.
type Settled struct {
	Charges  []SettledCharge
	Used     quantity.Units // by which it was settled
	Repeated bool           // the receipt had been settled before; this is the outcome of then
}

// SettledCharge is the outcome for one charge, in units.
type SettledCharge struct {
	Limit   string
	Back    quantity.Units // given back
	Reason  string         // why nothing was given back or charged; empty if something was, or nothing was due
	Charged quantity.Units // charged beyond what was reserved
	Owed    quantity.Units // what of that did not fit
}

// MaxUsed is the largest use that a charge is settled by.
const MaxUsed = algorithms.MaxUnits

// Settle settles what a decision charged, or what a client took, by what was used of it. If less was used
// than was charged, the rest is given back: nothing of a cell that no longer counts, and no turn of a
// leaky_bucket. If more was used, what is above is charged now, whatever is left. Each limit says how long
// its charge may be settled; a charge that is not settled counts as used. The first use that is told
// stands: a second call has the same answer. After a loss of the store nothing is given back. The error is
// an *invalid.Field, ErrRefused, or that of the store.
func (s *Receipts) Settle(ctx context.Context, receipt string, used quantity.Units) (Settled, error) {
	if used < 0 || used > MaxUsed {
		return Settled{}, invalid.Fieldf("used", "must be a whole number of units from 0 to %d", int64(MaxUsed))
	}
	r, lost, err := s.open(receipt)
	if err != nil {
		return Settled{}, err
	}
	current := s.config.Rules()
	calls, places, err := settles(current, r, used)
	if err != nil {
		return Settled{}, err
	}
	if lost && int64(used) <= r.GetCost() {
		return nothingLeft(places, used), nil
	}
	return s.settle(ctx, current, calls, places, len(r.GetCharges()))
}

// nothingLeft is the outcome for a receipt whose charges the store has lost since.
func nothingLeft(places [][]place, used quantity.Units) Settled {
	out := Settled{Used: used}
	for _, all := range places {
		for _, at := range all {
			out.Charges = append(out.Charges, SettledCharge{Limit: at.limit, Reason: algorithms.StoreLost.String()})
		}
	}
	return out
}

// settle makes the calls of a receipt.
func (s *Receipts) settle(ctx context.Context, current *rules.Rules, calls []algorithms.Settle, places [][]place,
	charges int) (Settled, error) {
	out, does := Settled{Charges: make([]SettledCharge, charges)}, false
	for i, c := range calls {
		for k := range c.Charges {
			c.Charges[k].ExistsUntil = s.config.Rights.ExistsUntil(places[i][k].bucket)
		}
		done, err := s.config.Store.Settle(ctx, c)
		for _, at := range places[i] {
			current.ForgetDenials(at.bucket, max(done.Now, s.config.Store.Latest()))
		}
		if err != nil { // if the receipt is sent again, it goes on from here
			for _, at := range places[i] {
				if b := current.Find(at.bucket); b != nil {
					s.config.Rights.Lose(ctx, b, err)
				}
			}
			return Settled{}, err
		}
		out.Repeated, out.Used = out.Repeated || done.Repeated, done.Used
		for k, one := range done.Charges {
			does = does || one.Back+one.Charged > 0 && !done.Repeated
			out.Charges[places[i][k].index] = s.settled(places[i][k].limit, one, done.Used < c.Cost, done.Repeated)
		}
	}
	// A shard of short limits forgets a call before the others do. It does nothing more then.
	out.Repeated = out.Repeated && !does
	return out, nil
}

// place says where a charge is in its receipt.
type place struct {
	index  int
	limit  string
	bucket string // the bucket's id
}

// settles returns the calls that settle the charges of a receipt, one for each shard, and the
// places of their charges.
func settles(current *rules.Rules, r *receiptv1.Receipt, used quantity.Units) (calls []algorithms.Settle,
	places [][]place, err error) {
	for i, charge := range r.GetCharges() {
		id := string(charge.GetBucket())
		ref, err := policy.ParseBucketID(policy.BucketID(id))
		if err != nil {
			return nil, nil, invalid.Fieldf("receipt", "names a bucket that cannot be read")
		}
		taken := algorithms.Charge{Target: algorithms.Target{Key: current.Key(id)},
			Cell: quantity.Cell(charge.GetCell())}
		at := quantity.StoreTime(cmp.Or(charge.GetAtUs(), r.GetAtUs()))
		if l := current.Limit(id); l != nil {
			taken.Terms = current.Find(id).Terms(current.Region)
			taken.Until, taken.MostOwed = at.Add(l.SettleWithin.Microseconds()), l.Owes()
		}
		shard := store.ShardOf(taken.Key)
		n := slices.IndexFunc(calls,
			func(c algorithms.Settle) bool { return store.ShardOf(c.Receipt) == shard })
		if n < 0 {
			n = len(calls)
			c := algorithms.Settle{Fence: algorithms.Fence{Epoch: current.Epoch},
				Receipt: store.SettleKey(shard, r.GetId()),
				Once:    store.OnceKey(shard, "none"),
				At:      at, Cost: quantity.Units(r.GetCost()), Used: used}
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

// settled describes and counts the outcome of one charge. due says that something was to be given back.
func (s *Receipts) settled(limit string, done algorithms.SettledCharge, due, repeated bool) SettledCharge {
	if due && done.Back == 0 && done.Refusal == algorithms.NotRefused { // a reset or a refill came before
		done.Refusal = algorithms.NoLongerWeighs
	}
	if !repeated {
		s.units.WithLabelValues(limit).Add(float64(done.Back))
		if done.Charged > 0 {
			s.config.Charged(limit, done.Charged, done.Owed)
		}
	}
	return SettledCharge{Limit: limit, Back: done.Back, Reason: done.Refusal.String(), Charged: done.Charged, Owed: done.Owed}
}
