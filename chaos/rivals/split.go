package rivals

import (
	"cmp"
	"slices"

	"github.com/quotad/quotad/chaos/play/workload"
)

// PooledOracle is one limiter that owns the whole limit and is reached from everywhere without
// delay. No real system can do better. What it admits and another system denies is a false denial
// of the other.
type PooledOracle struct{}

// Name is "pooled oracle".
func (PooledOracle) Name() string { return "pooled oracle" }

// Run admits whatever fits into the limit, in order of arrival.
func (PooledOracle) Run(w *workload.Workload, _ Network, _ uint64) Result {
	whole := newWhole(w)
	return Result{Admitted: offer(w, &clock{},
		func(a workload.Arrival) bool { return whole.admit(a.At, a.Cost) })}
}

// StaticSplit gives each region its entitlement and never moves a unit. It never exceeds the limit,
// and denies whatever a region is asked for beyond its part. If all demand is in one of n equal
// regions, it loses 1 - 1/n of the limit.
type StaticSplit struct{}

// Name is "static split".
func (StaticSplit) Name() string { return "static split" }

// Run lets each region decide by itself.
func (StaticSplit) Run(w *workload.Workload, _ Network, _ uint64) Result {
	c, d := &clock{}, divide(w)
	d.watch(c)
	admitted := offer(w, c,
		func(a workload.Arrival) bool { return d.limiters[a.Region].admit(a.At, a.Cost) })
	return Result{Admitted: admitted, Shares: d.samples}
}

// CentralBucket keeps the limit in one region, which decides all requests of the others. It is
// exact, but costs a round trip for each request, and gives no answer when that region is out of
// reach. The host is the region with the smallest sum of round trips, the first one if there are
// several.
type CentralBucket struct{}

// Name is "central bucket".
func (CentralBucket) Name() string { return "central bucket" }

// Run decides the requests in the order in which they reach the host.
func (CentralBucket) Run(w *workload.Workload, n Network, _ uint64) Result {
	host, whole := n.centre(), newWhole(w)
	count := len(w.Arrivals)
	r := Result{Admitted: make([]bool, count), Waited: make([]int64, count),
		Decided: make([]int64, count)}
	order := make([]int, count)
	for i, a := range w.Arrivals {
		order[i] = i
		r.Decided[i] = a.At + n.OneWay[a.Region][host]
		r.Waited[i] = n.RoundTrip(a.Region, host)
		if a.Region != host {
			r.Messages += 2
			r.Bytes += 2*headers + key + 8 + 8 // a cost, and an answer
		}
	}
	slices.SortStableFunc(order,
		func(i, j int) int { return cmp.Compare(r.Decided[i], r.Decided[j]) })
	for _, i := range order {
		r.Admitted[i] = whole.admit(r.Decided[i], w.Arrivals[i].Cost)
	}
	return r
}

// centre returns the region with the smallest sum of round trips to the others.
func (n Network) centre() int {
	best, least := 0, int64(1<<62)
	for i := range n.OneWay {
		var sum int64
		for j := range n.OneWay {
			sum += n.RoundTrip(i, j)
		}
		if sum < least {
			best, least = i, sum
		}
	}
	return best
}
