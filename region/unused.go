package region

import (
	"context"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/store"
)

// After a loss of the store's data every bucket of a short window is closed until nothing of before weighs. One that no node
// of the region used need not be, and each node remembers which it used (seen.go): if all say so, it is opened at once.

// unused returns the buckets that denied a request only because they are closed, and that this node did not use before.
func (n *Node) unused(w waiting, a answered) []exchange.LostBucket {
	if !a.ok() || a.decided.Answers[a.index].Admitted {
		return nil
	}
	var all []exchange.LostBucket
	generation := n.store.Generation()
	for i, v := range a.decided.Answers[a.index].Verdicts {
		b, state := w.applied[i].Bucket, a.decided.Buckets[i]
		closed := v.Retry != 0 && state.Shut > a.at(i) && state.Used == 0
		if closed && !b.Recovered && !n.seen.usedBefore(b.ID, generation) {
			all = append(all, exchange.LostBucket{Bucket: b, At: n.store.LostAt(store.ShardOf(w.applied[i].Target.Key))})
		}
	}
	return all
}

// openUnused has the machine find out whether nobody used some closed buckets, and waits for it as long as the request has time.
// It says whether deciding once more may help.
func (n *Node) openUnused(ctx context.Context, w waiting, closed []exchange.LostBucket, now int64) bool {
	all := make([]*waiter, len(closed))
	for i, l := range closed {
		all[i] = &waiter{woken: make(chan bool, 1)}
		n.engine.waiters.add(l.Bucket.ID, all[i])
		defer n.engine.waiters.remove(l.Bucket.ID, all[i])
	}
	if !n.askWhoUsed(closed, now) {
		return false
	}
	patience := time.NewTimer(time.Until(w.until))
	defer patience.Stop()
	for _, one := range all {
		select {
		case come := <-one.woken:
			if !come {
				return false
			}
		case <-patience.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// askWhoUsed has the machine ask all nodes whether they used some closed buckets; false: not while the store is being opened.
func (n *Node) askWhoUsed(closed []exchange.LostBucket, now int64) bool {
	if !n.standing.TryRLock() {
		return false
	}
	defer n.standing.RUnlock()
	return n.engine.post(exchange.Lost{Generation: n.store.Generation(), Now: now, Buckets: closed})
}
