//go:build !race

package assign

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quotad/quotad/allocator"
)

// A change is a step of demand in one region in which all else stands still. Its two Envoys report
// at other moments in each world.

const (
	changeRate = 900
	// planned is within which time of a report all is sent that follows from it: reports of the same
	// moment, two calls of the store, and a change that has to wait.
	planned   = reportsTogether + second/5 + changeSoon
	changesOf = 100 // worlds of each change
)

// assignable is what Envoys can have of it: the store keeps some.
var assignable = int64(changeRate - allocator.Unassigned(changeRate))

// change is what a world showed after its step, in times since then.
type change struct {
	used  []int64 // what the Envoys can use of their rates, step by step
	rates [][2]int64
	gave  int64 // when the first Envoy reported for the second time
}

// newChange returns a world whose Envoys have not begun.
func newChange(t *testing.T, seed uint64, late int64) *world {
	w := newWorld(t, seed, plans{rate: changeRate, burst: 1000, envoyBurst: 400, nodes: 1,
		envoys: 2, late: late, ttl: 10})
	for _, e := range w.envoys {
		e.demand, e.nextSend = 0, 1<<60
	}
	return w
}

// begin has an Envoy make its first request, which it reports at once. Its next report comes when
// its timer says so, which may have run for other ids.
func (w *world) begin(i int, demand float64) {
	e := w.envoys[i]
	e.demand, e.nextSend = demand, w.now
	w.run(step, func() {})
	e.nextSend = w.now + w.rand.Int64N(ReportEvery)
}

// moved makes demand end at the first Envoy, which has had its part for a minute, and begin at the
// second one.
func moved(from, to float64) func(w *world) {
	return func(w *world) {
		w.begin(0, from)
		w.run(60*second, func() {})
		w.envoys[0].demand = 0
		w.begin(1, to)
	}
}

// after makes a change in worlds, and shows what comes of each in half a minute. Nothing is ever
// above the limit.
func after(t *testing.T, late int64, step func(w *world), judge func(seed uint64, c *change)) {
	t.Helper()
	for seed := range uint64(changesOf) {
		w := newChange(t, seed, late)
		step(w)
		c := &change{gave: w.envoys[0].nextSend + ReportEvery - w.now}
		w.run(30*second, func() {
			sum, rates := int64(0), [2]int64{}
			for i, e := range w.envoys {
				if w.now < e.expires {
					sum, rates[i] = sum+min(e.rate, int64(e.demand)), e.rate
				}
			}
			c.used, c.rates = append(c.used, sum), append(c.rates, rates)
		})
		if w.least < 0 {
			t.Errorf("seed %d: %.2f admitted above the limit", seed, -w.least)
		}
		judge(seed, c)
	}
}

// most returns the time from which on 95 % of what is assignable is used; beyond the end if never.
func (c *change) most() int64 {
	i := len(c.used)
	for i > 0 && 100*c.used[i-1] >= 95*assignable {
		i--
	}
	return int64(i) * step
}

func (c *change) at(us int64) [2]int64 { return c.rates[us/step] }

// forLates runs a test with messages that take some time at most.
func forLates(t *testing.T, test func(t *testing.T, late int64)) {
	for _, late := range []int64{step, second / 2, Late - step} {
		t.Run(fmt.Sprintf("%d ms", late/1000), func(t *testing.T) { test(t, late) })
	}
}

// seconds are the quantiles of times: the median and the largest.
func seconds(all []int64) string {
	slices.Sort(all)
	return fmt.Sprintf("%.1f s, %.1f s at most", float64(all[len(all)/2])/second,
		float64(all[len(all)-1])/second)
}

// TestTheFirstEnvoyGetsHalfAtOnce: the first Envoy of an idle bucket gets half of what is free, and
// all that it wants with its next report.
func TestTheFirstEnvoyGetsHalfAtOnce(t *testing.T) {
	forLates(t, func(t *testing.T, late int64) {
		var all []int64
		after(t, late, func(w *world) { w.begin(0, 1500) }, func(seed uint64, c *change) {
			if rate := c.at(planned/2 + 2*late)[0]; rate < assignable/2 {
				t.Errorf("seed %d: it has %d a second", seed, rate)
			}
			if all = append(all, c.most()); c.most() > ReportEvery+planned+2*late {
				t.Errorf("seed %d: it has all after %d us", seed, c.most())
			}
		})
		t.Log("95 % after", seconds(all))
	})
}

// TestWhatAnEnvoyGivesUpIsUsed: demand that moves from one Envoy to another has what it had with
// the third report of the Envoy that gives up, but for one in a hundred, and mostly with its second
// one: the first tells, and the next proves that it has taken what it was told. The others began
// just after the step, so that they hardly tell of it, or the Envoy that begins told too late what
// it wants.
func TestWhatAnEnvoyGivesUpIsUsed(t *testing.T) {
	changes := map[string]func(w *world){
		"all": moved(1500, 1500), "most": moved(800, 1500), "a part": moved(600, 1500),
		"known": func(w *world) {
			w.begin(1, 1)
			moved(1500, 1500)(w)
		},
	}
	forLates(t, func(t *testing.T, late int64) {
		for name, step := range changes {
			var all []int64
			soon, tardy := 0, 0
			after(t, late, step, func(seed uint64, c *change) {
				since := c.most() - c.gave - 2*late
				if all = append(all, c.most()); since <= planned {
					soon++
				}
				if since > ReportEvery+planned { // a report that came the latest proved too little
					tardy++
					t.Logf("%s, seed %d: 95 %% after %d us, %d after the second report", name, seed, c.most(), since)
				}
			})
			t.Logf("%s: 95 %% after %s; with the second report in %d of %d", name, seconds(all), soon,
				changesOf)
			if 100*soon < 50*changesOf || 100*tardy > changesOf {
				t.Errorf("%s: with the second report in %d of %d, and after the third in %d", name, soon, changesOf, tardy)
			}
		}
	})
}

// TestASmallEnvoyIsNotStarved: an Envoy that wants little gets it, or three quarters at least,
// though another one needs all there is, and though what the other one has to give up is too little
// to be worth a change by itself.
func TestASmallEnvoyIsNotStarved(t *testing.T) {
	const small = 10
	changes := map[string]func(w *world){
		"new": func(w *world) {
			w.begin(0, 1500)
			w.run(60*second, func() {})
			w.begin(1, small)
		},
		"known": func(w *world) {
			w.begin(1, 0.1)
			w.begin(0, 1500)
			w.run(60*second, func() {})
			w.envoys[1].demand = small
		},
	}
	forLates(t, func(t *testing.T, late int64) {
		for name, step := range changes {
			after(t, late, step, func(seed uint64, c *change) {
				if rate := c.at(4 * ReportEvery)[1]; 4*rate < 3*small {
					t.Errorf("%s, seed %d: it has %d a second", name, seed, rate)
				}
			})
		}
	})
}

// TestEqualWantsGetEqualParts: two Envoys that want the same have about the same after three
// reports.
func TestEqualWantsGetEqualParts(t *testing.T) {
	changes := map[string]func(w *world){
		"together": func(w *world) {
			w.begin(0, 900)
			w.begin(1, 900)
		},
		"a second apart": func(w *world) {
			w.begin(0, 900)
			w.run(second, func() {})
			w.begin(1, 900)
		},
		"later": func(w *world) {
			w.begin(0, 900)
			w.run(60*second, func() {})
			w.begin(1, 900)
		},
	}
	forLates(t, func(t *testing.T, late int64) {
		for name, step := range changes {
			var all []int64
			after(t, late, step, func(seed uint64, c *change) {
				all = append(all, c.most())
				parts := c.at(3*ReportEvery + planned + 2*late)
				if least := slices.Min(parts[:]); 10*(slices.Max(parts[:])-least) > slices.Max(parts[:]) {
					t.Errorf("%s, seed %d: parts of %v", name, seed, parts)
				}
			})
			t.Logf("%s: 95 %% after %s", name, seconds(all))
		}
	})
}
