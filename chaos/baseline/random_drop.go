package baseline

import "github.com/quotad/quotad/chaos/workload"

// GlobalRandomDrop is the first of two schemes of Raghavan, Vishwanath, Ramabhadran, Yocum and
// Snoeren, "Cloud control with distributed rate limiting" (SIGCOMM 2007). Each limiter estimates
// its own arrival rate every 50 ms with an exponential average, and gossips it. With the sum A of
// all estimates and the limit L, each limiter drops a request with the probability (A - L) / A,
// whatever its region, and none while A <= L.
//
// The interval, the average (a new interval weighs 0.1) and the rule are the paper's. The scheme
// has no windows and no shares: it holds the mean rate, and what a window admits scatters around
// the limit. With Poisson arrivals beyond the limit, a window has a Poisson number of admissions,
// so its mean overshoot is L / sqrt(2 pi L), which is 1.3 % of the limit at L = 1000, and 13 % at
// 10. A burst is over before its rate is known.
type GlobalRandomDrop struct {
	// Interval is the time between two estimates in µs; 0: 50 ms.
	Interval int64
}

// Name is "global random drop".
func (GlobalRandomDrop) Name() string { return "global random drop" }

// Run starts with estimates of 0.
func (g GlobalRandomDrop) Run(w *workload.Workload, n Network, seed uint64) Result {
	interval := every50(g.Interval)
	var r Result
	c, random := &clock{}, source(seed)
	spread := newRumours(c, n, random, make([]int64, w.Regions), &r)
	rates := make([]estimate, w.Regions)
	for i := range rates {
		c.every(1+random.Int64N(interval), interval, func() {
			rates[i].finish(w.Window, interval)
			spread.tell(i, rates[i].rate)
		})
	}
	limit := w.Limit * fraction
	r.Admitted = offer(w, c, func(a workload.Arrival) bool {
		rates[a.Region].count(a.Cost)
		sum := rates[a.Region].rate + spread.others(a.Region)
		return sum <= limit || random.Int64N(sum) < limit
	})
	return r
}
