//go:build !race

package assign

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// The printed bound of Envoys that take messages late is met: all of them are paused with a message
// before them, their streams break, and they go on when others have long used what was theirs. They
// admit no more than the bound says, and no less than half.
func TestLateEnvoysMeetTheirBound(t *testing.T) {
	for name, c := range map[string]struct {
		plans plans
		eager float64 // what each Envoy wants, in limits a second
		kind  algorithms.Kind
	}{
		"bucket": {plans{rate: 1000, burst: 1000, envoyBurst: 900, nodes: 1, envoys: 4, late: 1, ttl: 10}, 0.5, algorithms.TokenBucket},
		"window": {plans{rate: 1000, burst: 1000, envoyBurst: 400, nodes: 1, envoys: 4, late: 1, ttl: 10, counted: true}, 1.4, algorithms.FixedWindow},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 7, c.plans)
			for _, e := range w.envoys {
				e.demand = c.eager * float64(c.plans.rate)
			}
			w.run(40*second, func() {})
			w.untilOpen()
			w.run(3*second/2, func() {})
			last := w.pause()
			w.plans.greedy = true
			w.untilOpen()
			w.run(30*second, func() {})
			above := w.wakeLate(last)
			bound := late(c.kind, w)
			t.Logf("%d above, %d printed", above, bound)
			if above > bound || 2*above < bound {
				t.Errorf("%d admitted above the limit, the printed bound is %d", above, bound)
			}
		})
	}
}

// The printed bound is also that of Envoys whose reports are all late, from the first of a stream on.
// No sum of theirs shows it. At the end of a window, when each Envoy uses all that it has, they admit
// what no report has shown yet. That is something, and not above the bound.
func TestReportsThatAreAlwaysLateMeetTheBound(t *testing.T) {
	const calm = 45 * second // of each window
	worst := quantity.Units(0)
	for seed := range uint64(30) {
		w := newWorld(t, seed, plans{rate: 1000, burst: 2000, envoyBurst: 1500, nodes: 1, envoys: 1 + int(seed%4), late: second / 20,
			ttl: 10, eager: 1, counted: true, delay: 14 * second})
		w.untilOpen()
		above := quantity.Units(0)
		w.run(4*windowLength, func() {
			for _, e := range w.envoys {
				e.demand = float64(w.plans.rate) / float64(len(w.envoys))
				if w.now%windowLength > calm {
					e.demand = 10 * float64(w.plans.rate)
				}
			}
			above = max(above, -w.left(w.cell()))
		})
		if bound := late(algorithms.FixedWindow, w); above > bound {
			t.Errorf("seed %d: %d above the limit, the printed bound is %d", seed, above, bound)
		}
		worst = max(worst, above)
	}
	t.Logf("%d above the limit of %d at most", worst, 1000*windowLength/second)
	if worst < 1000 {
		t.Errorf("%d above the limit at most: nothing is provoked", worst)
	}
}

// left returns what is left of a window, by what callers used and Envoys admitted of it.
func (w *world) left(c quantity.Cell) quantity.Units {
	left := w.share(c) - w.used[c]
	for _, spent := range w.spent {
		left -= spent[c]
	}
	return left
}

// late returns the printed bound.
func late(kind algorithms.Kind, w *world) (most quantity.Units) {
	b := w.bucket()
	e := allocator.Exposure{Kind: kind, Limit: w.entitlement(), Window: b.Window,
		TTL: w.plans.ttl * second, EnvoyBurst: w.plans.envoyBurst, Cell: w.cells().Length, Nodes: 2,
		Splits: []allocator.Split{{Units: []quantity.Units{w.entitlement()},
			Burst: []quantity.Units{w.plans.burst}}}}
	for _, one := range allocator.Bounds(e) {
		if one.Cause == "late-envoy" {
			most = max(most, one.Most)
		}
	}
	return most
}

// untilOpen lets time pass until a cell opens.
func (w *world) untilOpen() {
	w.run(w.cells().Opens(w.cell()+1).Sub(quantity.StoreTime(w.now)), func() {})
}

// pause has all Envoys do nothing from now on, and their streams break. It returns what they find
// when they go on: the largest message of the last eleven seconds, which was under way when they
// were paused.
func (w *world) pause() (last map[*worldEnvoy]*told) {
	last = map[*worldEnvoy]*told{}
	for _, e := range w.envoys {
		most := int64(0)
		for _, one := range e.node.told[e.stream] {
			if units := one.rate * one.ttl; one.from > w.now-silentAfter && units > most {
				last[e], most = one, units
			}
		}
		e.demand, e.expires, e.nextSend = 0, 0, 1<<60
		w.cut(e)
	}
	return last
}

// wakeLate has the Envoys take what they find. It returns how much more is admitted then than the
// limit allows, until all is over.
func (w *world) wakeLate(last map[*worldEnvoy]*told) quantity.Units {
	for e, one := range last {
		e.rate, e.burst, e.tokens, e.by = one.rate, one.burst, float64(one.burst), "late"
		e.expires, e.demand = w.now+one.ttl*second, 1<<20
	}
	c := w.cell()
	w.run(w.plans.ttl*second+second, func() {})
	if w.plans.counted {
		w.untilOpen()
		return w.used[c] + w.spent["late"][c] - w.share(c)
	}
	return quantity.Units(-w.least)
}
