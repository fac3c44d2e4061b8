package region

import (
	"context"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
)

// waiters are the requests that wait for rights to be borrowed, by bucket. The zero value is ready to use.
type waiters struct {
	mu  sync.Mutex
	all map[string]map[*waiter]struct{}
}

// waiter is one request.
type waiter struct {
	cost  int64
	woken chan bool // true: rights have come; buffered
}

// add puts a waiter on a bucket's list and returns what all on it lack together.
func (w *waiters) add(bucket string, r *waiter) (units int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]map[*waiter]struct{}{}
	}
	if w.all[bucket] == nil {
		w.all[bucket] = map[*waiter]struct{}{}
	}
	w.all[bucket][r] = struct{}{}
	for other := range w.all[bucket] {
		units = min(units+other.cost, algorithms.MaxUnits)
	}
	return units
}

func (w *waiters) remove(bucket string, r *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all[bucket], r)
	if len(w.all[bucket]) == 0 {
		delete(w.all, bucket)
	}
}

// wake tells all that wait for a bucket that rights have come, or that none will.
func (w *waiters) wake(bucket string, come bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.all[bucket] {
		select {
		case r.woken <- come:
		default: // it has been told already
		}
	}
}

// borrow asks the peers for what a request lacks of each of the buckets and waits until rights of every one have come,
// at most one and a half round trips to the farthest peer. It says whether deciding once more may help.
func (e *engine) borrow(ctx context.Context, lacking []*exchange.Bucket, cost int64) bool {
	ctx, cancel := context.WithTimeout(ctx, e.patience())
	defer cancel()
	waits := make([]*waiter, len(lacking))
	for i, b := range lacking { // all at once
		waits[i] = &waiter{cost: cost, woken: make(chan bool, 1)}
		units := min(e.waiters.add(b.ID, waits[i]), b.Limit)
		defer e.waiters.remove(b.ID, waits[i])
		if !e.post(exchange.Wanted{Bucket: b, Units: units}) {
			return false
		}
	}
	for _, w := range waits {
		select {
		case come := <-w.woken:
			if !come {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// patience is one and a half round trips to the farthest peer that answers.
func (e *engine) patience() time.Duration {
	ages, _, _ := e.snapshot()
	farthest := int64(allocator.Second / 100)
	for _, a := range ages {
		if !a.Degraded {
			farthest = max(farthest, a.RoundTrip)
		}
	}
	return microseconds(farthest * 3 / 2)
}
