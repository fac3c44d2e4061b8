package rivals

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/play/workload"
)

// limitOf returns the workload's limit for the oracle.
func limitOf(w *workload.Workload) oracle.Limit {
	return oracle.Limit{Limit: w.Limit, Burst: w.Burst,
		Window: time.Duration(w.Window) * time.Microsecond, Algorithm: w.Algorithm}
}

// judge has the oracle judge all answers, for the worst excess and the false denials.
func (f *Figures) judge(w *workload.Workload, r Result) {
	limit := limitOf(w)
	limit.Settle = settle(r)
	j := oracle.New(limit)
	names := make([]string, w.Regions)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	for i, a := range w.Arrivals {
		outcome := oracle.Denied
		if r.Admitted[i] {
			outcome = oracle.Admitted
		}
		at := r.decided(w, i)
		j.Record(oracle.Answer{
			Bucket: "b", Region: names[a.Region], Node: "n", Sequence: uint64(i),
			Cost: a.Cost, Outcome: outcome, Cell: limit.CellOf(at), At: at,
			Sent: time.UnixMicro(a.At), Seen: time.UnixMicro(max(a.At+r.waited(i), at)),
		})
	}
	f.OvershootMax = partOf(j.Verdict().MaxExcess, w.Limit)
	for _, phase := range j.Summary() {
		f.Pooled += phase.Total.PooledAdmits
		f.FalseDenials += phase.Total.FalseDenials
	}
	f.FalseRate = partOf(f.FalseDenials, f.Pooled)
}

// settle returns how long after its arrival the last request may be decided. The shorter this is,
// the less the oracle keeps in memory and the faster it is.
func settle(r Result) time.Duration {
	var longest int64
	for i := range r.Waited {
		longest = max(longest, r.Waited[i])
	}
	return time.Duration(longest+1) * time.Microsecond
}

// inOrder returns the indexes of the arrivals in the order of their decisions.
func inOrder(w *workload.Workload, r Result) []int {
	order := make([]int, len(w.Arrivals))
	for i := range order {
		order[i] = i
	}
	if r.Decided != nil {
		slices.SortStableFunc(order,
			func(i, j int) int { return cmp.Compare(r.Decided[i], r.Decided[j]) })
	}
	return order
}

// overshoot computes the mean excess of cells.
func (f *Figures) overshoot(w *workload.Workload, r Result) {
	var sum int64
	excess := excesses(w, r)
	for _, units := range excess {
		sum += units
		if units > 0 {
			f.CellsOver++
		}
	}
	f.Cells = int64(len(excess))
	f.OvershootMean = partOf(sum, w.Limit*max(f.Cells, 1))
}

// excesses returns the largest excess of each cell over what it may hold, in units; 0 if there was
// none.
func excesses(w *workload.Workload, r Result) map[int64]int64 {
	limit, whole := limitOf(w), newWhole(w)
	worst := map[int64]int64{}
	for _, i := range inOrder(w, r) {
		at := r.decided(w, i)
		whole.meter.advance(at)
		if r.Admitted[i] {
			whole.meter.charge(w.Arrivals[i].Cost)
		}
		cell := limit.CellOf(at)
		worst[cell] = max(worst[cell], whole.meter.level()-whole.bound)
	}
	return worst
}

// causes divides the false denials into Late and Split. It looks at single denials of what the
// pooled limiter admits. A region's shortage begins with such a denial if the region had none for
// two windows.
func (f *Figures) causes(w *workload.Workload, r Result, n Network) {
	pool := newWhole(w)
	began, last := make([]int64, w.Regions), make([]int64, w.Regions)
	for i := range last {
		last[i] = -1 << 62
	}
	var late, split int64
	for _, i := range inOrder(w, r) {
		a, at := w.Arrivals[i], r.decided(w, i)
		pooled := pool.admit(at, a.Cost)
		switch {
		case r.Admitted[i]:
			continue
		case !pooled:
			f.RightlyDenied += a.Cost
			continue
		case at-last[a.Region] > 2*w.Window:
			began[a.Region] = at
		}
		last[a.Region] = at
		if at-began[a.Region] <= n.farthest(a.Region) {
			late += a.Cost
		} else {
			split += a.Cost
		}
	}
	if late+split > 0 {
		f.Late = workload.MulDiv(f.FalseDenials, late, late+split)
		f.Split = f.FalseDenials - f.Late
	}
}

// use computes utilisation and fairness, window by window.
func (f *Figures) use(w *workload.Workload, r Result) {
	count := (w.Length + w.Window - 1) / w.Window
	offered, admitted := make([][]int64, count), make([][]int64, count)
	for k := range offered {
		offered[k], admitted[k] = make([]int64, w.Regions), make([]int64, w.Regions)
	}
	for i, a := range w.Arrivals {
		k := a.At / w.Window
		offered[k][a.Region] += a.Cost
		if r.Admitted[i] {
			admitted[k][a.Region] += a.Cost
		}
	}
	var usable int64
	given, due := make([]int64, w.Regions), make([]int64, w.Regions)
	for k := range offered {
		var sum int64
		for _, units := range offered[k] {
			sum += units
		}
		usable += min(sum, w.Limit)
		if sum <= w.Limit {
			continue
		}
		for i, units := range oracle.WaterFill(w.Limit, offered[k], w.Entitlements) {
			due[i] += units
			given[i] += admitted[k][i]
		}
	}
	f.Utilisation = partOf(f.Admitted, usable)
	f.Fairness = jain(given, due)
}

// jain returns Jain's index of given / due, over those with due > 0: 100 % if all were given the
// same part of what is due, 1/n of that if one was given everything.
func jain(given, due []int64) Millionths {
	var n, sum, squares int64
	for i := range due {
		if due[i] > 0 {
			// Limited to a hundred times what is due, so that the squares fit.
			part := min(workload.MulDiv(given[i], million, due[i]), 100*million)
			n, sum, squares = n+1, sum+part, squares+part*part
		}
	}
	switch {
	case n == 0:
		return None
	case squares == 0:
		return million // nothing was given to anyone, which is equal
	}
	return Millionths(workload.MulDiv(sum, workload.MulDiv(sum, million, n), squares))
}

// waits returns the median and the 99th percentile of the waits.
func waits(r Result) (p50, p99 int64) {
	if len(r.Waited) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(r.Waited))
	return sorted[(len(sorted)-1)*50/100], sorted[(len(sorted)-1)*99/100]
}
