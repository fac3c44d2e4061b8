//go:build !race

package baseline

import (
	"math"
	"testing"

	"github.com/quotad/quotad/chaos/oracle"
	"github.com/quotad/quotad/chaos/workload"
)

// made draws a named demand over the usual limit.
func made(t *testing.T, name string, length int64) *workload.Workload {
	t.Helper()
	s := workload.Usual()
	s.Length = length
	w, err := workload.Make(name, s, 11)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// admittedIn is what each region admitted from the window on, per window.
func admittedIn(w *workload.Workload, r Result, from int64) (byRegion []float64, byWindow []int64) {
	byRegion, byWindow = make([]float64, w.Regions), make([]int64, w.Length/w.Window-from)
	for i, a := range w.Arrivals {
		if k := a.At/w.Window - from; k >= 0 && r.Admitted[i] {
			byRegion[a.Region] += float64(a.Cost) / float64(len(byWindow))
			byWindow[k] += a.Cost
		}
	}
	return byRegion, byWindow
}

// As in the paper, global random drop holds the mean rate at the limit and drops the same part
// everywhere. A window's admissions are about Poisson, so that the mean overshoot is about 1 /
// sqrt(2 pi L); it is a little less, because the estimates follow the arrivals.
func TestGlobalRandomDropHoldsTheMeanRate(t *testing.T) {
	w := made(t, "contention", 60*second)
	r := GlobalRandomDrop{}.Run(w, Uniform(3, 40_000), 1)
	const warm = 4 // windows until the averages have settled
	byRegion, byWindow := admittedIn(w, r, warm)
	var sum, over float64
	for _, units := range byWindow {
		sum += float64(units)
		over += max(0, float64(units-w.Limit))
	}
	count := float64(len(byWindow))
	near(t, "admitted a window", sum/count, 1000, 0.02)
	closed := 1 / math.Sqrt(2*math.Pi*1000)
	if mean := over / count / 1000; mean < closed/3 || mean > closed*1.6 {
		t.Errorf("the mean overshoot is %.4f of the limit, in closed form %.4f", mean, closed)
	}
	offered := w.Demand(warm*w.Window, w.Length)
	for i, units := range byRegion {
		near(t, "admitted part", units/float64(offered[i]), 1/1.5, 0.03)
	}
}

// As in the paper, a longer interval makes it respond later.
func TestGlobalRandomDropNeedsFreshEstimates(t *testing.T) {
	w := made(t, "surge", 15*second)
	n := Uniform(3, 40_000)
	fast := Measure(w, GlobalRandomDrop{}.Run(w, n, 1), n)
	slow := Measure(w, GlobalRandomDrop{Interval: second / 2}.Run(w, n, 1), n)
	if fast.OvershootMax < 300_000 || slow.OvershootMax < 2*fast.OvershootMax*9/10 {
		t.Errorf("a surge is exceeded by %s with estimates every 50 ms, and %s every 500 ms",
			fast.OvershootMax, slow.OvershootMax)
	}
}

// As in the paper, flow proportional share holds the limit within a few percent and gives each
// limiter the max-min share of its flows, where random drop gives in proportion to what is asked
// for.
func TestFlowProportionalIsMaxMinFair(t *testing.T) {
	w := made(t, "contention", 30*second)
	n := Uniform(3, 40_000)
	r := FlowProportional{}.Run(w, n, 1)
	byRegion, byWindow := admittedIn(w, r, 4)
	var sum float64
	for _, units := range byWindow {
		sum += float64(units)
	}
	near(t, "admitted a window", sum/float64(len(byWindow)), 1000, 0.02)
	for i, due := range oracle.WaterFill(w.Limit, w.Demand(0, w.Length), w.Entitlements) {
		near(t, "share", byRegion[i], float64(due), 0.05)
	}
	f, drop := Measure(w, r, n), Measure(w, GlobalRandomDrop{}.Run(w, n, 1), n)
	if f.OvershootMean > 15_000 || f.Fairness < 995_000 || drop.Fairness > 900_000 {
		t.Errorf("over by %s in the mean, fairness %s, that of random drop %s", f.OvershootMean,
			f.Fairness, drop.Fairness)
	}
}

// If unequal demands add up to less than the limit, it finds a division that serves nearly all.
func TestFlowProportionalServesSkew(t *testing.T) {
	for _, name := range []string{"even-80", "one-region", "zipf", "follow-the-sun"} {
		w := made(t, name, 20*second)
		n := Uniform(3, 40_000)
		if f := Measure(w, FlowProportional{}.Run(w, n, 1), n); f.FalseRate > 20_000 ||
			f.OvershootMean > 5_000 {
			t.Errorf("%s: %s falsely denied, %s over", name, f.FalseRate, f.OvershootMean)
		}
	}
}

// Each of ten regions tells three others each time, and all soon know of all.
func TestRumoursReachEverybody(t *testing.T) {
	const regions = 10
	var r Result
	c := &clock{}
	g := newRumours(c, Uniform(regions, 40_000), source(1), make([]int64, regions), &r)
	for i := range regions {
		c.every(1, 50_000, func() { g.tell(i, int64(i)+1) })
	}
	c.advance(10 * 50_000)
	for i := range regions {
		if got, want := g.others(i), int64(regions*(regions+1)/2-i-1); got != want {
			t.Errorf("region %d knows of %d, want %d", i, got, want)
		}
	}
	if r.Messages != 10*regions*branching {
		t.Errorf("%d messages", r.Messages)
	}
}
