package rivals

import "github.com/quotad/quotad/chaos/play/workload"

// limiter enforces a part of a workload's limit by its algorithm.
type limiter struct {
	meter meter
	bound int64 // for the level: the share, or the burst of a bucket
	burst bool
}

// newLimiter returns a limiter of so many units of the limit and of the burst.
func newLimiter(w *workload.Workload, units, burst int64) *limiter {
	l := &limiter{meter: newMeter(w.Algorithm, units, w.Window), bound: units, burst: w.Burst > 0}
	if l.burst {
		l.bound = burst
	}
	return l
}

// newWhole returns a limiter of the whole limit.
func newWhole(w *workload.Workload) *limiter { return newLimiter(w, w.Limit, w.Burst) }

// admit reports whether a request is admitted, and charges it if so.
func (l *limiter) admit(at, cost int64) bool {
	if !l.fits(at, cost) {
		return false
	}
	l.meter.charge(cost)
	return true
}

// fits reports whether a request would be admitted.
func (l *limiter) fits(at, cost int64) bool {
	l.meter.advance(at)
	return cost <= l.bound-l.meter.level()
}

// share changes the part of the limit and of the burst from a time on.
func (l *limiter) share(at, units, burst int64) {
	l.meter.advance(at)
	l.meter.rate(units)
	l.bound = units
	if l.burst {
		l.bound = burst
	}
}

// divided is one limiter for each region.
type divided struct {
	w        *workload.Workload
	shares   []int64
	limiters []*limiter
	samples  []Sample
}

// divide gives each region its entitlement and the same part of the burst.
func divide(w *workload.Workload) *divided {
	d := &divided{w: w, shares: append([]int64(nil), w.Entitlements...)}
	bursts := workload.Split(w.Burst, w.Entitlements)
	for i, f := range w.Entitlements {
		d.limiters = append(d.limiters, newLimiter(w, f, bursts[i]))
	}
	return d
}

// give sets the share of one region from a time on, and its burst in proportion.
func (d *divided) give(at int64, region int, units int64) {
	d.shares[region] = units
	d.limiters[region].share(at, units, workload.MulDiv(d.w.Burst, units, d.w.Limit))
	d.sample(at)
}

// sample records the shares.
func (d *divided) sample(at int64) {
	d.samples = append(d.samples, Sample{At: at, Share: append([]int64(nil), d.shares...)})
}

// watch records the shares every 100 ms.
func (d *divided) watch(c *clock) { c.every(0, 100_000, func() { d.sample(c.now) }) }

// offer runs the clock and calls decide for every arrival.
func offer(w *workload.Workload, c *clock, decide func(workload.Arrival) bool) []bool {
	admitted := make([]bool, len(w.Arrivals))
	for i, a := range w.Arrivals {
		c.advance(a.At)
		admitted[i] = decide(a)
	}
	c.advance(w.Length)
	return admitted
}
