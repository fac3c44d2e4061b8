package admit

import (
	"context"
	"fmt"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
)

// maxSettled bounds what one call of Settle charges.
const maxSettled = 1024

// Settle charges in the store what this node admitted without it, under the document in force.
// A spend whose bucket is no longer in that document counts nowhere and is dropped.
func (f *fallback) Settle(ctx context.Context) {
	all := f.unsettled(maxSettled)
	if len(all) == 0 || f.tenure.Generation() == 0 {
		return
	}
	current := f.tenure.Rules()
	var calls []algorithms.Book
	var charged []localSpend
	var buckets []*exchange.Bucket
	for _, one := range all {
		b := current.Find(one.bucket)
		if b == nil {
			f.settled(one)
			continue
		}
		charged, buckets = append(charged, one), append(buckets, b)
		calls = append(calls, algorithms.Book{Fence: algorithms.Fence{Epoch: b.Epoch},
			Target: current.Target(b, f.rights.Exists(b)),
			Node:   f.node, Window: one.window, Units: one.units})
	}
	for i, res := range f.store.Book(ctx, calls) {
		switch {
		case res.Err != nil:
			f.rights.Lose(ctx, buckets[i], res.Err)
		case res.Value.Done:
			f.booked.Add(float64(f.settled(charged[i])))
		}
	}
}

// SettleAll charges in the store everything that this node admitted without it, before the node
// ends. The error says how many units could not be charged.
func (f *fallback) SettleAll(ctx context.Context) error {
	left := f.Status().Unbooked
	// One call of Settle charges a bounded number of spends.
	for before := left + 1; left > 0 && left < before; {
		f.Settle(ctx)
		before, left = left, f.Status().Unbooked
	}
	if left > 0 {
		return fmt.Errorf("units that node %s admitted without the store are not charged there: %d; what others admit in their windows comes on top",
			f.node, left)
	}
	return nil
}
