//go:build !race

package rivals

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/workload"
)

const second = workload.Second

// flow is evenly spaced demand in one region, with rate units a second.
type flow struct {
	region         int
	from, to, rate int64
}

// evenly is a workload of evenly spaced requests of one unit.
func evenly(limit, window, length int64, regions int, flows ...flow) *workload.Workload {
	w := &workload.Workload{
		Name: "evenly", Regions: regions, Limit: limit, Window: window, Algorithm: "fixed_window",
		Length:       length,
		Entitlements: workload.Split(limit, slices.Repeat([]int64{1}, regions)),
	}
	for _, f := range flows {
		for i := int64(0); f.from+i*second/f.rate < f.to; i++ {
			w.Arrivals = append(w.Arrivals, workload.Arrival{At: f.from + i*second/f.rate,
				Region: f.region, Cost: 1})
		}
	}
	slices.SortStableFunc(w.Arrivals,
		func(a, b workload.Arrival) int { return cmp.Compare(a.At, b.At) })
	return w
}

// near fails unless got is want, give or take a part.
func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*want {
		t.Errorf("%s: %.2f, want %.2f give or take %.0f %%", what, got, want, 100*part)
	}
}

// A region that is asked for d, by a limit that covers all demand, has F of it, and loses d - F in
// every window.
func TestStaticSplitLosesWhatIsAboveTheSplit(t *testing.T) {
	w := evenly(1000, second, 10*second, 4, flow{0, 0, 10 * second, 700},
		flow{1, 0, 10 * second, 200})
	f := Measure(w, StaticSplit{}.Run(w, Uniform(4, 40_000), 1), Uniform(4, 40_000))
	if f.FalseDenials != 10*(700-250) || f.OvershootMax != 0 || f.Admitted != 10*(250+200) {
		t.Errorf("%+v", f)
	}
}

// With Poisson arrivals of mean m in one of three regions, the loss is E[min(N, L)] - E[min(N, F)].
func TestStaticSplitUnderPoissonArrivals(t *testing.T) {
	s := workload.Usual()
	s.Length = 60 * second
	w, err := workload.Make("one-region", s, 4)
	suite.Must(t, err)
	n := Uniform(3, 40_000)
	f := Measure(w, StaticSplit{}.Run(w, n, 1), n)
	want := 60 * (limited(950, 1000) - limited(950, w.Entitlements[0]))
	near(t, "false denials", float64(f.FalseDenials), want, 0.02)
	near(t, "rate", float64(f.FalseRate)/million, 1-334.0/950, 0.02)
}

// limited is E[min(N, most)] of a Poisson N.
func limited(mean float64, most int64) float64 {
	sum, below := 0.0, 0.0
	for k := range most {
		p := math.Exp(float64(k)*math.Log(mean) - mean - logFactorial(k))
		sum += float64(k) * p
		below += p
	}
	return sum + float64(most)*(1-below)
}

func logFactorial(k int64) float64 {
	log, _ := math.Lgamma(float64(k + 1))
	return log
}

// The central bucket is exact, and costs exactly one round trip to the host.
func TestCentralBucketCostsOneRoundTrip(t *testing.T) {
	w := evenly(100, second, 5*second, 3, flow{0, 0, 5 * second, 90}, flow{1, 0, 5 * second, 80},
		flow{2, 0, 5 * second, 70})
	n := Network{OneWay: [][]int64{{0, 10_000, 90_000}, {20_000, 0, 40_000}, {80_000, 30_000, 0}}}
	r := CentralBucket{}.Run(w, n, 1)
	const host = 1 // 30 + 70 ms, against 200 and 240
	remote := int64(0)
	for i, a := range w.Arrivals {
		want := n.OneWay[a.Region][host] + n.OneWay[host][a.Region]
		if r.Waited[i] != want {
			t.Fatalf("a request of region %d waited %d µs, want %d", a.Region, r.Waited[i], want)
		}
		if a.Region != host {
			remote++
		}
	}
	f := Measure(w, r, n)
	if f.OvershootMax != 0 || f.FalseDenials != 0 || r.Messages != 2*remote ||
		f.WaitP50 != 30_000 || f.WaitP99 != 70_000 {
		t.Errorf("%+v, %d messages", f, r.Messages)
	}
}

func TestPooledOracleLosesNothing(t *testing.T) {
	w := evenly(100, second, 5*second, 3, flow{0, 0, 5 * second, 300})
	f := Measure(w, PooledOracle{}.Run(w, Uniform(3, 40_000), 1), Uniform(3, 40_000))
	if f.Admitted != 500 || f.FalseDenials != 0 || f.OvershootMax != 0 ||
		f.Utilisation != million || f.RightlyDenied != 1000 {
		t.Errorf("%+v", f)
	}
}

// Each of N regions admits r a second until its own count and what it knows of the others add up to
// L. The part that it does not know is r times the age of its knowledge: between d and T + d, on
// average T/2 + d. So L is exceeded by (N - 1) r (T/2 + d) on average, and by (N - 1) r (T + d) at
// most.
func TestEventualCountersExceedByRateTimesAge(t *testing.T) {
	const rate, latency, interval = 20, 100_000, 5 * second
	for _, regions := range []int{2, 3, 5} {
		var flows []flow
		for i := range regions {
			flows = append(flows, flow{i, 0, 60 * second, rate})
		}
		limit := 17 * rate * int64(regions) // full after 17 s and a bit
		w := evenly(limit, 60*second, 60*second, regions, flows...)
		n := Uniform(regions, latency)
		var sum float64
		const runs = 30
		most := float64(regions-1) * rate * (interval + latency) / second
		for seed := range uint64(runs) {
			r := EventualCounters{}.Run(w, n, seed)
			excess := float64(excesses(w, r)[0])
			if excess > most+float64(regions) {
				t.Errorf("%d regions, seed %d: exceeded by %.0f, and by %.0f at most", regions,
					seed, excess, most)
			}
			sum += excess
		}
		near(t, "mean excess", sum/runs, float64(regions-1)*rate*(interval/2+latency)/second, 0.12)
	}
}

// In windows shorter than the interval each region has the whole limit.
func TestEventualCountersGiveEachRegionTheLimit(t *testing.T) {
	w := evenly(100, second, 10*second, 4, flow{0, 0, 10 * second, 200},
		flow{1, 0, 10 * second, 200}, flow{2, 0, 10 * second, 200}, flow{3, 0, 10 * second, 200})
	n := Uniform(4, 40_000)
	f := Measure(w, EventualCounters{}.Run(w, n, 3), n)
	if f.OvershootMax != 3*million || f.FalseDenials != 0 {
		t.Errorf("with 4 regions the limit was exceeded by %s, %d false denials", f.OvershootMax,
			f.FalseDenials)
	}
}

// The share follows a rise with the next report, plus the way to the leader and the way back. Until
// then the region loses what it wants beyond its share.
func TestCoordinatorFollowsAtTheNextReport(t *testing.T) {
	const step = 12 * second
	w := evenly(1000, second, 40*second, 2, flow{1, 0, 40 * second, 100},
		flow{0, step, 40 * second, 800})
	w.Entitlements = []int64{500, 500}
	w.Step = &workload.Step{At: step, Region: 0}
	n := Uniform(2, 40_000)
	n.OneWay[0][1] = 70_000 // region 0 hosts the leader, as the first of equals
	r := Coordinator{}.Run(w, n, 9)
	first := 1 + source(9).Int64N(10*second)
	granted := first + 40_000 // the slowest report is region 1's
	for granted < step {
		granted += 10 * second
	}
	// Before, it was granted half of what region 1 leaves of the limit: 450. The first denial comes
	// when these are used, in the first window after the step.
	began := int64(step + 450*second/800)
	f := Measure(w, r, n)
	if f.FirstUnit != granted-began || f.Rebalanced != granted-began {
		t.Errorf("the share rose after %d µs, and was enough after %d, want %d", f.FirstUnit,
			f.Rebalanced, granted-began)
	}
	if want := 350 * ((granted - step) / second); f.FalseDenials != want {
		t.Errorf("%d false denials, want %d", f.FalseDenials, want)
	}
}

// A lowered grant that is below what was already used exceeds the limit by the difference.
func TestCoordinatorExceedsWhenAUsedGrantFalls(t *testing.T) {
	w := evenly(1000, 60*second, 60*second, 2, flow{0, 0, 5 * second, 100},
		flow{1, 20 * second, 60 * second, 50})
	n := Uniform(2, 40_000)
	f := Measure(w, Coordinator{}.Run(w, n, 1), n)
	if f.OvershootMax != 500_000 {
		t.Errorf("a region that used 500 and was left with 0 made the limit exceeded by %s",
			f.OvershootMax)
	}
}
