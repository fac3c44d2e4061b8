package rivals

import (
	"slices"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/play/workload"
)

// rebalance measures how fast the share followed the step.
func (f *Figures) rebalance(w *workload.Workload, r Result, n Network) {
	f.FirstUnit, f.Rebalanced, f.RoundTrips = None, None, None
	if w.Step == nil || len(r.Shares) == 0 {
		return
	}
	region := w.Step.Region
	began, denied := firstDenial(w, r)
	if !denied {
		f.FirstUnit, f.Rebalanced, f.RoundTrips = 0, 0, 0
		return
	}
	wanted := oracle.WaterFill(w.Limit, w.Demand(w.Step.At, w.Length), w.Entitlements)[region]
	had := shareAt(r.Shares, region, began)
	f.FirstUnit = reached(r.Shares, region, began, had+1)
	f.Rebalanced = reached(r.Shares, region, began, (wanted*95+99)/100)
	if f.Rebalanced != None {
		f.RoundTrips = workload.MulDiv(f.Rebalanced, 1000, max(n.farthest(region), 1))
	}
}

// firstDenial returns when the first request after the step was denied in the step's region: then
// the region knows that its share is too small.
func firstDenial(w *workload.Workload, r Result) (at int64, denied bool) {
	for i, a := range w.Arrivals {
		if a.At >= w.Step.At && a.Region == w.Step.Region && !r.Admitted[i] {
			return r.decided(w, i), true
		}
	}
	return 0, false
}

// shareAt returns a region's share at a time: that of the last sample not after it.
func shareAt(samples []Sample, region int, at int64) int64 {
	share := samples[0].Share[region]
	for _, s := range samples {
		if s.At > at {
			break
		}
		share = s.Share[region]
	}
	return share
}

// reached returns how long after since a region's share was first at least so many units, None if
// never.
func reached(samples []Sample, region int, since, units int64) int64 {
	if shareAt(samples, region, since) >= units {
		return 0
	}
	i := slices.IndexFunc(samples,
		func(s Sample) bool { return s.At > since && s.Share[region] >= units })
	if i < 0 {
		return None
	}
	return samples[i].At - since
}
