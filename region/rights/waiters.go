package rights

import (
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
)

// waiters are the requests that wait for a bucket: for rights of it, or for it to be restored or opened. The zero value is ready to use.
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
	woken chan bool // true: asking the store once more may help; buffered
}

// add puts a waiter on a bucket's list.
func (w *waiters) add(bucket string, r *waiter) {
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
}

// cost returns what all on a bucket's list cost together, at most MaxUnits.
func (w *waiters) cost(bucket string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(w.all[bucket].units, algorithms.MaxUnits)
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

// wake tells all that wait for a bucket whether asking the store once more may help.
func (w *waiters) wake(bucket string, helps bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.all[bucket]
	if c == nil {
		return
	}
	for r := range c.each {
		select {
		case r.woken <- helps:
		default: // it has been told already
		}
	}
}

// Lack is a bucket that denied a request, as the denial found it.
type Lack struct {
	Bucket *exchange.Bucket
	State  algorithms.State
}

// Wait is a request that waits for buckets: for rights of them, or for them to be restored or opened.
type Wait struct {
	engine *Engine
	of     []string  // ids of the buckets
	each   []*waiter // for each of them
	told   int       // so many of them, from the first on, were told of, and may help
}

// Wait has a request of some cost wait for buckets, which have ids, until Leave. It is told of all that happens to them from
// now on.
func (e *Engine) Wait(cost int64, ids ...string) *Wait {
	w := &Wait{engine: e, of: ids}
	for _, id := range ids {
		one := &waiter{cost: cost, woken: make(chan bool, 1)}
		e.waiters.add(id, one)
		w.each = append(w.each, one)
	}
	return w
}

// Leave ends the wait.
func (w *Wait) Leave() {
	for i, id := range w.of {
		w.engine.waiters.remove(id, w.each[i])
	}
}

// Buckets returns the ids of the buckets that are waited for.
func (w *Wait) Buckets() []string { return w.of }

// Until waits until each of the buckets was told of, until over has a value, or gone is closed. helps: asking the store once
// more may help, by what was said of all of them.
func (w *Wait) Until(over <-chan time.Time, gone <-chan struct{}) (helps, timedOut bool) {
	for w.told < len(w.each) {
		select {
		case helps := <-w.each[w.told].woken:
			if !helps {
				return false, false
			}
			w.told++
		case <-over:
			return false, true
		case <-gone:
			return false, false
		}
	}
	return true, false
}

// Over is Until for whoever does not wait: it says whether the wait is over.
func (w *Wait) Over() (helps, over bool) {
	for w.told < len(w.each) {
		select {
		case helps := <-w.each[w.told].woken:
			if !helps {
				return false, true
			}
			w.told++
		default:
			return false, false
		}
	}
	return true, true
}

// Settle tells all requests that wait for a bucket whether asking the store once more may help. Run does it; whoever steps the
// machine by hand must.
func (e *Engine) Settle(s exchange.Settled) { e.waiters.wake(s.Bucket, s.Come) }

// Borrow asks the peers for what requests that wait lack of each of some buckets, and has the request wait for it; nil: that
// cannot be asked for, because too much is.
func (e *Engine) Borrow(lacking []Lack, cost, now int64) *Wait {
	ids := make([]string, len(lacking))
	for i, l := range lacking {
		ids[i] = l.Bucket.ID
	}
	w := e.Wait(cost, ids...)
	for _, l := range lacking {
		units := min(e.waiters.cost(l.Bucket.ID), l.Bucket.Limit)
		posted := e.post(exchange.Wanted{Bucket: l.Bucket, Units: units, State: l.State, Now: now})
		if !posted {
			w.Leave()
			return nil
		}
	}
	return w
}

// Patience is how long a request waits for rights at most: one and a half round trips to the farthest peer that answers.
func (e *Engine) Patience() time.Duration {
	ages, _, _ := e.Snapshot()
	farthest := int64(allocator.Second / 100)
	for _, a := range ages {
		if !a.Degraded {
			farthest = max(farthest, a.RoundTrip)
		}
	}
	return microseconds(farthest * 3 / 2)
}

func microseconds(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
