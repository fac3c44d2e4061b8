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
	all map[string]*crowd
}

// crowd is all that wait for one bucket.
type crowd struct {
	units int64 // that they cost together
	each  map[*waiter]struct{}
}

// waiter is one request.
type waiter struct {
	cost  int64
	woken chan bool // true: deciding once more may help; buffered
}

// add puts a waiter on a bucket's list and returns what all on it cost together, at most MaxUnits.
func (w *waiters) add(bucket string, r *waiter) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]*crowd{}
	}
	c := w.all[bucket]
	if c == nil {
		c = &crowd{each: map[*waiter]struct{}{}}
		w.all[bucket] = c
	}
	c.each[r] = struct{}{}
	c.units += r.cost
	return min(c.units, algorithms.MaxUnits)
}

func (w *waiters) remove(bucket string, r *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.all[bucket]
	delete(c.each, r)
	c.units -= r.cost
	if len(c.each) == 0 {
		delete(w.all, bucket)
	}
}

// wake tells all that wait for a bucket whether deciding once more may help.
func (w *waiters) wake(bucket string, come bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.all[bucket]
	if c == nil {
		return
	}
	for r := range c.each {
		select {
		case r.woken <- come:
		default: // it has been told already
		}
	}
}

// lack is a bucket that denied a request, as the denial found it.
type lack struct {
	bucket *exchange.Bucket
	state  algorithms.State
}

// borrow asks the peers for what a request lacks of each of the buckets and waits until rights of every one have come,
// at most one and a half round trips to the farthest peer. It says whether deciding once more may help; it does not
// where nothing is on its way, or the caller has gone.
func (e *engine) borrow(ctx context.Context, lacking []lack, cost, now int64) bool {
	waits := make([]*waiter, len(lacking))
	for i, l := range lacking { // all at once
		waits[i] = &waiter{cost: cost, woken: make(chan bool, 1)}
		units := min(e.waiters.add(l.bucket.ID, waits[i]), l.bucket.Limit)
		defer e.waiters.remove(l.bucket.ID, waits[i])
		if !e.post(exchange.Wanted{Bucket: l.bucket, Units: units, State: l.state, Now: now}) {
			return false
		}
	}
	patience := time.NewTimer(e.patience())
	defer patience.Stop()
	for _, w := range waits {
		select {
		case come := <-w.woken:
			if !come {
				return false
			}
		case <-patience.C:
			return true // what has come meanwhile, or the next cell, may do
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
