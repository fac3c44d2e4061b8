package rights

import (
	"context"
	"errors"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// Lose begins the recovery of a bucket if err is a *store.LostBucket. If the bucket was deleted
// from a store that lost nothing else, Lose first begins a new generation.
//
// Lose reports whether the recovery has begun. It has not if err is another error, if the bucket is
// not one that is recovered, if the new generation cannot begin, if the queue is full, or while the
// store is being opened: the machine would forget what it is told before it hears of the new
// generation.
func (e *Engine) Lose(ctx context.Context, b *exchange.Bucket, err error) bool {
	lost, is := errors.AsType[*store.LostBucket](err)
	if !is || !b.Recovered {
		return false
	}
	t := e.config.Tenure
	generation := t.Generation()
	if t.Deleted(b.ID, lost.LostAt) {
		if err := t.EndGeneration(context.WithoutCancel(ctx), generation); err != nil {
			return false
		}
	}
	return e.postLost(lost.AnsweredAt, exchange.LostBucket{Bucket: b, At: lost.LostAt})
}

// AskWhoUsed makes the machine find out whether any node of the region used some buckets that a
// loss of the store's data closed. now is the store's time. It returns false while the store is
// being opened, or if the queue is full.
//
// After such a loss every bucket of a short window is closed until the old use no longer counts. A
// bucket that nobody used need not be. Each node remembers which buckets it used. If all nodes say
// that they did not use a bucket, the machine makes the store open it.
func (e *Engine) AskWhoUsed(closed []exchange.LostBucket, now quantity.StoreTime) bool {
	return e.postLost(now, closed...)
}

func (e *Engine) postLost(now quantity.StoreTime, all ...exchange.LostBucket) (posted bool) {
	e.config.Tenure.During(func(generation uint64) {
		posted = e.post(exchange.Lost{Generation: generation, Now: now, Buckets: all})
	})
	return posted
}
