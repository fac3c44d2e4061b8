package rights

import (
	"context"

	"github.com/quotad/quotad/allocator/exchange"
)

// Lose has a bucket recovered that the store lost at a time, as of another. It says whether that is under way. It is not
// while the store is being opened: what the machine is told before it has heard of that, it forgets.
func (e *Engine) Lose(ctx context.Context, b *exchange.Bucket, lostAt, now int64) bool {
	if !b.Recovered {
		return false
	}
	t := e.config.Tenure
	generation := t.Generation()
	if t.Deleted(b.ID, lostAt) {
		if err := t.EndGeneration(context.WithoutCancel(ctx), generation); err != nil {
			return false
		}
	}
	return e.postLost(now, exchange.LostBucket{Bucket: b, At: lostAt})
}

// AskWhoUsed has the machine find out whether no node of the region used some buckets that are closed since a loss of the
// store's data, as of a time of the store; false: not while the store is being opened.
//
// After such a loss every bucket of a short window is closed until nothing of before weighs. One that nobody used need not
// be, and each node remembers which it used: if all say so, the machine has it opened.
func (e *Engine) AskWhoUsed(closed []exchange.LostBucket, now int64) bool {
	return e.postLost(now, closed...)
}

func (e *Engine) postLost(now int64, all ...exchange.LostBucket) (posted bool) {
	e.config.Tenure.During(func(generation uint64) {
		posted = e.post(exchange.Lost{Generation: generation, Now: now, Buckets: all})
	})
	return posted
}
