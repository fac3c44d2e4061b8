package rivals

import (
	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/play/workload"
)

// Coordinator is a leader that divides the limit. Every 10 s each region reports its demand:
// the mean of the interval or of its last quarter, whichever is larger. The leader grants shares by
// weighted max-min of these demands, which hold until the next grant. Units that nobody wants are
// granted by entitlement, so that an idle region is not left with nothing. This is the scheme of
// Doorman (YouTube, 2016) with its fair share; Doorman's README calls a renewal every five seconds
// typical.
//
// After a rise of demand the share follows with the next report, on average half an interval later,
// plus the two one-way latencies to and from the leader. If a grant is lowered when the region has
// already used more of the window than the grant leaves it, the limit is exceeded by at most the
// difference. It is also exceeded if a lowered grant arrives later than another region's raised
// one. The leader never fails here.
type Coordinator struct{}

// grantEvery is the time between two grants in µs.
const grantEvery = 10 * workload.Second

// Name is "coordinator".
func (Coordinator) Name() string { return "coordinator" }

// Run starts with the entitlements as the first grants.
func (Coordinator) Run(w *workload.Workload, n Network, seed uint64) Result {
	var r Result
	c, d, leader := &clock{}, divide(w), n.centre()
	d.watch(c)
	first := 1 + source(seed).Int64N(grantEvery)
	all, recent := newTally(w, c), newTally(w, c)
	c.every(max(first-grantEvery/4, 0), grantEvery, func() { recent.reset() })
	c.every(first, grantEvery, func() {
		demand := make([]int64, w.Regions)
		var slowest int64
		for i := range demand {
			demand[i] = max(all.perWindow(i), recent.perWindow(i))
			slowest = max(slowest, n.OneWay[i][leader])
		}
		all.reset()
		r.Messages += 2 * int64(w.Regions-1)
		r.Bytes += 2 * int64(w.Regions-1) * (headers + key + 8)
		c.after(slowest, func() {
			for i, grant := range grants(w, demand) {
				c.after(n.OneWay[leader][i], func() { d.give(c.now, i, grant) })
			}
		})
	})
	r.Admitted = offer(w, c, func(a workload.Arrival) bool {
		all.asked[a.Region] += a.Cost
		recent.asked[a.Region] += a.Cost
		return d.limiters[a.Region].admit(a.At, a.Cost)
	})
	r.Shares = d.samples
	return r
}

// tally counts what regions were asked for since a time.
type tally struct {
	w     *workload.Workload
	c     *clock
	since int64
	asked []int64
}

func newTally(w *workload.Workload, c *clock) *tally {
	return &tally{w: w, c: c, asked: make([]int64, w.Regions)}
}

// reset starts counting again, now.
func (t *tally) reset() {
	t.since = t.c.now
	clear(t.asked)
}

// perWindow returns what a region was asked for, as units per window, rounded up.
func (t *tally) perWindow(region int) int64 {
	passed := t.c.now - t.since
	if t.asked[region] == 0 || passed == 0 {
		return 0
	}
	return workload.MulDiv(t.asked[region], t.w.Window, passed) + 1
}

// grants divides the limit by demand, and the rest by entitlement.
func grants(w *workload.Workload, demand []int64) []int64 {
	shares := oracle.WaterFill(w.Limit, demand, w.Entitlements)
	left := w.Limit
	for _, s := range shares {
		left -= s
	}
	for i, more := range workload.Split(left, w.Entitlements) {
		shares[i] += more
	}
	return shares
}
