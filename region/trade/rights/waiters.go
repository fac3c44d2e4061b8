package rights

import (
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
)

// waiters holds the requests that wait for buckets: for rights, or for the bucket to be restored or
// opened. The zero value is ready to use. It is safe for concurrent use.
type waiters struct {
	mu  sync.Mutex
	all map[string]*crowd
}

// crowd holds all requests that wait for one bucket.
type crowd struct {
	units quantity.Units // what they cost together
	each  map[*waiter]struct{}
}

// waiter is one request that waits for one bucket.
type waiter struct {
	cost  quantity.Units
	woken chan bool // true: asking the store again may help; buffered
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
func (w *waiters) cost(bucket string) quantity.Units {
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

// wake tells all that wait for a bucket whether asking the store again may help.
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

// Lack is a bucket that denied a request, and the state in which it did.
type Lack struct {
	Bucket *exchange.Bucket
	State  algorithms.State
}

// Wait is a request that waits for buckets: for rights of them, or for them to be restored or
// opened.
type Wait struct {
	engine *Engine
	of     []string  // ids of the buckets
	each   []*waiter // for each of them
	told   int       // how many, from the first on, were told that it may help
}

// Reopened stands for the store among the ids of buckets. A request that waits for it is told when
// the store is open again. No bucket has this id.
const Reopened = ""

// Wait makes a request of the given cost wait for the buckets with these ids, until Leave. From now
// on it is told of every end of a wait for one of them.
func (e *Engine) Wait(cost quantity.Units, ids ...string) *Wait {
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

// Buckets returns the ids of the buckets that the request waits for.
func (w *Wait) Buckets() []string { return w.of }

// Until waits until the wait for every bucket has ended, until over has a value (timedOut), or
// until gone is closed. helps says that asking the store again may help for all of the buckets.
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

// Over is Until without waiting. over reports whether the wait has ended.
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

// Settle tells all requests that wait for a bucket whether asking the store again may help. Run
// calls it. A test that steps the machine by hand must call it.
func (e *Engine) Settle(s exchange.Settled) { e.waiters.wake(s.Bucket, s.RetryHelps) }

// Borrow asks the peers for what waiting requests lack of some buckets. It returns the wait of one
// request of the given cost for them. now is the store's time of the denial. It returns nil if too
// many such asks wait already.
func (e *Engine) Borrow(lacking []Lack, cost quantity.Units, now quantity.StoreTime) *Wait {
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

// Pause makes a request wait until cells end in which what some buckets lack would come too late for
// its cost. It returns a wait that is told nothing, and how long it is; nil: there is nothing to wait
// for, or those that wait so for a bucket already cost all of its limit. now is the store's time of
// the denial.
func (e *Engine) Pause(lacking []Lack, cost quantity.Units, now quantity.StoreTime) (*Wait, time.Duration) {
	farthest, rest := e.farthest(), int64(0)
	ids := make([]string, len(lacking))
	for i, l := range lacking {
		ids[i] = "next cell of " + l.Bucket.ID // no bucket has such an id
		rest = max(rest, l.Bucket.LentFrom(now, cost, farthest*3/2))
	}
	if farthest == 0 || rest == 0 {
		return nil, 0
	}
	w := e.Wait(cost, ids...)
	for i, l := range lacking {
		if e.waiters.cost(ids[i]) > l.Bucket.Limit {
			w.Leave()
			return nil, 0
		}
	}
	return w, quantity.Duration(rest)
}

// Patience returns the longest time that a request waits for rights that were asked for: one and a
// half round trips to the farthest peer that is not degraded, at least 15 ms.
func (e *Engine) Patience() time.Duration {
	return quantity.Duration(max(e.farthest(), allocator.Second/100) * 3 / 2)
}

// farthest returns the round trip to the farthest peer that is not degraded, in us; 0: all are.
func (e *Engine) farthest() (roundTrip int64) {
	ages, _, _ := e.Snapshot()
	for _, a := range ages {
		if !a.Degraded {
			roundTrip = max(roundTrip, a.RoundTrip)
		}
	}
	return roundTrip
}
