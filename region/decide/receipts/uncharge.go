package receipts

import (
	"context"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/store"
)

// Uncharge gives back units of what was charged last to each limit that applies to a request, whoever
// it was charged for: its cost, and at most what counts there as used, of windows in the present cell,
// of a log by its newest entries. Turns of a leaky_bucket are not given back. It is not idempotent. The
// error is that of the store.
func (s *Receipts) Uncharge(ctx context.Context, w queue.Ask) (Settled, error) {
	out := Settled{Charges: make([]SettledCharge, len(w.Applied))}
	for _, p := range w.Parts() {
		c := algorithms.Settle{Fence: algorithms.Fence{Epoch: w.Rules.Epoch}, Cost: w.Cost,
			Once: store.OnceKey(p.Shard, "none")}
		for _, i := range p.Of {
			a := w.Applied[i]
			target := a.Target.Target
			target.ExistsUntil = s.config.Rights.ExistsUntil(a.Bucket.ID)
			c.Charges = append(c.Charges, algorithms.Charge{Target: target})
		}
		done, err := s.config.Store.Settle(ctx, c)
		for n, i := range p.Of {
			a := w.Applied[i]
			a.Held.Forget(max(done.Now, s.config.Store.Latest()))
			if err != nil {
				s.config.Rights.Lose(ctx, a.Bucket, err)
				continue
			}
			out.Charges[i] = s.settled(a.Limit.Name, done.Charges[n], true, false)
		}
		if err != nil {
			return Settled{}, err
		}
	}
	return out, nil
}
