package rivals

import (
	"cmp"
	"slices"

	"github.com/quotad/quotad/chaos/play/workload"
)

// EventualCounters is what most systems with "eventually consistent" limits do. Every region counts
// what it admits and reports it to the others from time to time. It admits while its own count and
// what it last heard of the others are below the limit. Skew costs nothing. But until regions hear
// of each other, each of them has the whole limit: N regions may admit up to N limits in a window
// shorter than the interval. In a longer window, with latency d and a region's rate r of
// admissions, each region has admitted up to r (interval + d) that the others do not know of.
//
// The interval is usually configured in seconds. Reports count at the time at which the units were
// admitted, in the right window; no design in use does better. Regions do not report at the same
// times.
type EventualCounters struct{}

// reportEvery is the time between two reports of a region in µs.
const reportEvery = 5 * workload.Second

// Name is "eventual counters".
func (EventualCounters) Name() string { return "eventual counters" }

// Run lets each region decide by what it knows.
func (EventualCounters) Run(w *workload.Workload, n Network, seed uint64) Result {
	var r Result
	c, random := &clock{}, source(seed)
	views, news := make([]*view, w.Regions), make([][]entry, w.Regions)
	for i := range w.Regions {
		views[i] = newView(w, reportEvery+n.farthest(i))
		c.every(1+random.Int64N(reportEvery), reportEvery, func() {
			told := news[i]
			news[i] = nil
			for j := range w.Regions {
				if i == j {
					continue
				}
				r.Messages++
				r.Bytes += headers + key + 16 // two counters: this window and the last
				c.after(n.OneWay[i][j], func() { views[j].learn(c.now, told) })
			}
		})
	}
	r.Admitted = offer(w, c, func(a workload.Arrival) bool {
		if !views[a.Region].admit(a.At, a.Cost) {
			return false
		}
		news[a.Region] = append(news[a.Region], entry{a.At, a.Cost})
		return true
	})
	return r
}

// view is a limiter of the whole limit that learns of some admissions late. It remembers the latest
// admissions. When it learns of others, it replays all of them in their true order.
type view struct {
	limiter
	settled meter // all admissions before the earliest of recent
	recent  []entry
	horizon int64 // admissions older than this are not reported any more
}

func newView(w *workload.Workload, horizon int64) *view {
	whole := newWhole(w)
	return &view{limiter: *whole, settled: whole.meter.clone(), horizon: horizon}
}

// admit decides by what the region knows.
func (v *view) admit(at, cost int64) bool {
	if !v.limiter.admit(at, cost) {
		return false
	}
	v.recent = append(v.recent, entry{at, cost})
	return true
}

// learn adds admissions that another region reported.
func (v *view) learn(now int64, told []entry) {
	v.recent = append(v.recent, told...)
	slices.SortStableFunc(v.recent, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	old := 0
	for ; old < len(v.recent) && v.recent[old].at < now-v.horizon; old++ {
		play(v.settled, v.recent[old])
	}
	v.recent = v.recent[old:]
	v.meter = v.settled.clone()
	for _, e := range v.recent {
		play(v.meter, e)
	}
	v.meter.advance(now)
}

// play charges an admission at its time.
func play(m meter, e entry) {
	m.advance(e.at)
	m.charge(e.units)
}
