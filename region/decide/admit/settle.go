package admit

import (
	"context"
	"fmt"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
)

// SettleLocal charges in the store what this node admitted without it, under the document in force.
// A spend whose bucket is no longer in that document counts nowhere and is dropped.
func (l *Limiter) SettleLocal(ctx context.Context) {
	all := l.fallback.unsettled(maxBatched)
	if len(all) == 0 || l.tenure.Generation() == 0 {
		return
	}
	current := l.tenure.Rules()
	var calls []algorithms.Book
	var charged []localSpend
	var buckets []*exchange.Bucket
	for _, one := range all {
		b := current.Find(one.bucket)
		if b == nil {
			l.fallback.settled(one)
			continue
		}
		charged, buckets = append(charged, one), append(buckets, b)
		calls = append(calls, algorithms.Book{Fence: algorithms.Fence{Epoch: b.Epoch},
			Target: current.Target(b, l.rights.Exists(b)),
			Node:   l.config.Node, Window: one.window, Units: one.units})
	}
	for i, res := range l.store.Book(ctx, calls) {
		switch {
		case res.Err != nil:
			l.rights.Lose(ctx, buckets[i], res.Err)
		case res.Value.Done:
			l.metrics.booked.Add(float64(l.fallback.settled(charged[i])))
		}
	}
}

// SettleAll charges in the store everything that this node admitted without it, before the node
// ends. The error says how many units could not be charged.
func (l *Limiter) SettleAll(ctx context.Context) error {
	left := l.fallback.status().Unbooked
	// One call of SettleLocal charges a bounded number of spends.
	for before := left + 1; left > 0 && left < before; {
		l.SettleLocal(ctx)
		before, left = left, l.fallback.status().Unbooked
	}
	if left > 0 {
		return fmt.Errorf("units that node %s admitted without the store are not charged there: %d; what others admit in their windows comes on top",
			l.config.Node, left)
	}
	return nil
}
