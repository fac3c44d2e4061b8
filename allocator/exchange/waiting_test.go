//go:build !race

package exchange

import (
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// waiter is a group of requests that were denied together and wait for rights (on_exhausted:
// borrow), to be decided again.
type waiter struct {
	units quantity.Units
	over  bool
}

// wait has denied units wait until rights have come, as long as region's waiters do: one and a half
// round trips.
func (r *testRegion) wait(units quantity.Units, d algorithms.Decided) {
	w := &waiter{units: units}
	r.waiters = append(r.waiters, w)
	life := r.born
	r.after(3*r.net.delay, func() { r.again(w, r.born == life) })
	var all quantity.Units
	for _, w := range r.waiters {
		all += w.units
	}
	r.step(Wanted{Bucket: r.bucket, Units: min(all, r.bucket.Limit), State: d.Buckets[0],
		Now: d.Now})
}

// wake ends the wait of all that wait.
func (r *testRegion) wake(come bool) {
	if woken := r.woken; woken != nil {
		r.woken = nil
		r.after(500, func() { woken(come) })
	}
	for _, w := range r.waiters {
		r.after(500, func() { r.again(w, come) })
	}
}

// again decides waiting requests again, if that may help.
func (r *testRegion) again(w *waiter, come bool) {
	if w.over {
		return
	}
	w.over = true
	r.waiters = slices.DeleteFunc(r.waiters, func(other *waiter) bool { return other == w })
	denied := w.units
	if come {
		_, denied = r.charge(w.units)
	}
	r.denied += denied
}
