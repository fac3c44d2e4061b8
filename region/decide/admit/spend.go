package admit

import (
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/prefetch"
	"github.com/quotad/quotad/region/memory/rules"
)

// spendAtOnce is spend for a request of its own. It allocates nothing.
func (l *Limiter) spendAtOnce(q *Request) (Decision, bool) {
	r := l.tenure.Rules()
	if !r.Prefetches || r.Replaces || q.ID != "" || q.Receipt || q.Lists != nil {
		return Decision{}, false
	}
	var room [prefetch.MaxSpent]*rules.Applied
	applied := r.Append(room[:0], q.Domain, q.Descriptors)
	if !prefetch.Spendable(applied) || r.Stray(q.Domain, q.Descriptors, nil) != "" {
		return Decision{}, false
	}
	d, paid := l.spend(r, applied, q.Cost)
	if paid {
		o := l.accounts.outcome(d)
		for _, a := range applied {
			l.accounts.one(a, q.Cost, d, o)
		}
	}
	return d, paid
}

// spends reports whether chunks can admit the request: not one with an id or a receipt, or with a cost
// for each limit.
func (w *way) spends(receipt bool) bool {
	return w.Commit && w.Once == "" && !receipt && !w.Apart() && prefetch.Spendable(w.Applied)
}

// spend admits a request whose limits are spendable from the chunks that the node holds, if it
// holds enough of all its buckets.
func (l *Limiter) spend(r *rules.Rules, applied []*rules.Applied, cost quantity.Units) (Decision, bool) {
	least, paid := l.chunks.Spend(r, applied, cost)
	if !paid {
		return Decision{}, false
	}
	return l.describe(admitted(least), least.Of), true
}

// admitted returns the decision on a request that was admitted from a chunk.
func admitted(least prefetch.Payment) Decision {
	c := least.Chunk
	return Decision{Allowed: true, Reason: WithinLimit, Remaining: least.Remaining,
		ResetAfter: quantity.Duration(c.Reset(least.At)), Cell: c.State.Cell, At: c.At(least.At),
		Share: max(c.State.Share, 0), FromMemory: true}
}
