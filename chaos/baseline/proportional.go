package baseline

import "github.com/quotad/quotad/chaos/workload"

// FlowProportional is the second scheme of Raghavan et al. (SIGCOMM 2007; see GlobalRandomDrop):
// flow proportional share. Each limiter enforces a local limit L w / (sum of all weights), and
// gossips its weight w every 50 ms. A limiter whose demand is at or above its local limit uses as
// its weight the number of equal flows it carries (the paper's local limit by the largest flow's
// rate). Another limiter uses the weight at which its local limit would be its demand r: w = r (sum
// of the others' weights) / (L - r). The fixed point of the scheme is the weighted max-min share of
// each limiter, by number of flows.
//
// The paper counts TCP flows, which back off; requests do not. Here the number of flows is the
// region's entitlement, so that the scheme aims at the same division as quotad. Demand is the
// average that global random drop uses. The local limiter is the workload's own algorithm, in
// thousandths of a unit, instead of the paper's token bucket.
//
// Two additions are ours. Without them there are twice as many false denials here. First, the
// weight is averaged like the demand, because otherwise a region with a small share would claim its
// whole number of flows whenever it touches that share for a moment. Second, the weight is at least
// 1/64 of the number of flows, because by the rule above all weights shrink together for ever while
// no limiter is at its limit.
//
// If a share is less than the cost of one request, a window admits none. Small limits lose much by
// that.
type FlowProportional struct {
	// Interval is the time between two estimates in µs; 0: 50 ms.
	Interval int64
}

// Name is "flow-proportional".
func (FlowProportional) Name() string { return "flow-proportional" }

// milli is the number of parts of a unit in local limits, so that small limits are not lost to
// rounding.
const milli = 1000

// Run starts with the weights that regions have when all are at their limits, which gives each its
// entitlement.
func (p FlowProportional) Run(w *workload.Workload, n Network, seed uint64) Result {
	interval := every50(p.Interval)
	var r Result
	fine := *w
	fine.Limit, fine.Burst, fine.Entitlements = w.Limit*milli, w.Burst*milli, nil
	flows := make([]int64, w.Regions)
	for i, f := range w.Entitlements {
		fine.Entitlements = append(fine.Entitlements, f*milli)
		flows[i] = max(f, 1) * fraction
	}
	c, d, random := &clock{}, divide(&fine), source(seed)
	d.watch(c)
	spread := newRumours(c, n, random, flows, &r)
	rates := make([]estimate, w.Regions)
	for i := range rates {
		c.every(1+random.Int64N(interval), interval, func() {
			rates[i].finish(w.Window, interval)
			others := spread.others(i)
			weight := spread.known[i][i].value
			weight += (weigh(rates[i].rate, d.shares[i]*fraction/milli, w.Limit*fraction, others,
				flows[i]) - weight) / 10
			spread.tell(i, weight)
			d.give(c.now, i, mulDiv(fine.Limit, weight, weight+others))
		})
	}
	r.Admitted = offer(w, c, func(a workload.Arrival) bool {
		rates[a.Region].count(a.Cost)
		return d.limiters[a.Region].admit(a.At, a.Cost*milli)
	})
	for _, s := range d.samples {
		for i := range s.Share {
			s.Share[i] /= milli
		}
	}
	r.Shares = d.samples
	return r
}

// weigh returns the weight that a limiter aims at. demand, local limit and limit are in units per
// window times fraction. others is the sum of the others' weights, and flows the limiter's number
// of flows in the same unit.
func weigh(demand, local, limit, others, flows int64) int64 {
	if demand >= local || demand >= limit {
		return flows
	}
	return min(max(mulDiv(demand, others, limit-demand), flows/64), flows)
}
