package sim

import (
	"fmt"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// The tight draw (Config.Tight) is tuned to come near what the judge allows, so that a judge that
// allowed too much would show (Tightness). All regions ask for more than the limit all the time.
// Most plans have short windows and only faults for which nothing is allowed. The others bring
// about one mishap for which a bound is printed, in the way that exceeds most. It has a random
// stream of its own.

// drawTight draws a plan by the tight draw.
func drawTight(p *Plan, c Config) {
	d := &drawing{Rand: p.random(forTight, 0), Config: c, plan: p}
	p.Keys, p.Heal = []string{"k0"}, c.For-healing
	n := d.IntN(2) + 2
	for i := range n {
		p.Regions = append(p.Regions, RegionPlan{Name: fmt.Sprintf("r%d", i),
			Weight: d.within(1, 3), Nodes: 2})
		p.OneWay = append(p.OneWay, make([]int64, n))
	}
	for i := range n {
		for j := range n {
			if i != j {
				p.OneWay[i][j] = d.within(2_000, 40_000)
			}
		}
	}
	switch d.IntN(6) {
	case 0:
		d.deletion()
	case 1:
		d.withoutStore()
	default:
		d.saturated()
	}
}

// only writes a document of one limit.
func (d *drawing) only(kind algorithms.Kind, window, units int64, more string) {
	d.kinds, d.windows, d.limits = []algorithms.Kind{kind}, []int64{window}, []int64{units}
	d.plan.Document = "regions:\n"
	for _, r := range d.plan.Regions {
		d.plan.Document += fmt.Sprintf("  %s: {weight: %d}\n", r.Name, r.Weight)
	}
	d.plan.Document += fmt.Sprintf(
		"limits:\n  - {name: l0, domain: api, key: [account], algorithm: %s, limit: %d, window: %ds%s}\n",
		kind, units, window/allocator.Second, more)
}

// ask has a region ask in a stretch of time for so many units a second, 50 times a second.
func (d *drawing) ask(region int, from, to, units int64) {
	const times = 50
	d.add(Act{Do: Steady, Region: region, At: from, For: to - from, Amount: times * 1000,
		Cost: quantity.Units(max(2*units/times, 1))})
}

// saturated has all regions ask for all of a short window, and draws faults for which nothing is
// allowed.
func (d *drawing) saturated() {
	kind := one(d, algorithms.FixedWindow, algorithms.FixedWindow, algorithms.TokenBucket,
		algorithms.TokenBucket, algorithms.SlidingWindowCounter, algorithms.SlidingWindowLog,
		algorithms.LeakyBucket)
	if d.Algorithm != "" {
		kind = d.Algorithm
	}
	window := d.within(1, 3) * allocator.Second
	if kind.Sliding() {
		window = allocator.Second
	}
	units := one(d, int64(60), 100, 300)
	d.only(kind, window, units, ", on_store_failure: deny")
	for r := range d.plan.Regions {
		d.ask(r, 0, d.plan.Heal-1, max(units*allocator.Second/window, 1))
	}
	kinds := []Deed{Cut, Lossy, Slow, Crash, CrashPoints, Flush, StoreAnew, Pause, Leave, CutHints}
	for range d.within(0, 8) {
		d.fault(one(d, kinds...))
	}
}

// long returns the length of a window that is recovered.
func (d *drawing) long() int64 { return d.within(63, 90) * allocator.Second }

// deletion has a region use a bucket by one node, and deletes it. The other node, which has no note
// of it, is asked then.
func (d *drawing) deletion() {
	kind := one(d, algorithms.FixedWindow, algorithms.SlidingWindowLog, algorithms.TokenBucket)
	units := one(d, int64(60), 100, 300)
	d.only(kind, d.long(), units, one(d, ", lending_limit: 0", "")+", on_store_failure: deny")
	r := d.IntN(len(d.plan.Regions))
	const second = allocator.Second
	gone := d.within(8, min(20, d.plan.Heal/second-4)) * second
	for other := range d.plan.Regions {
		if other != r {
			d.ask(other, second, d.plan.Heal-1, units)
		}
	}
	d.ask(r, second, gone-second/2, units)
	d.ask(r, gone+second, d.plan.Heal-1, units)
	d.add(Act{Do: Stick, Region: r, Peer: -1, For: gone})
	d.add(Act{Do: Stick, Region: r, Peer: -1, At: gone, For: d.plan.Heal - gone - 1, Node: 1})
	d.add(Act{Do: Delete, Region: r, Peer: -1, At: gone})
	if d.IntN(2) == 0 {
		d.add(Act{Do: Crash, Region: r, Peer: -1, At: gone - second/4,
			For: min(d.within(1, 10)*second, d.plan.Heal-gone)})
	}
}

// withoutStore has a region use all of a window, and then what its nodes may admit without their
// store.
func (d *drawing) withoutStore() {
	kind := one(d, algorithms.FixedWindow, algorithms.SlidingWindowLog)
	units := one(d, int64(60), 100, 300)
	d.only(kind, d.long(), units,
		fmt.Sprintf(", lending_limit: %s, on_store_failure: local", one(d, "0", "0.5")))
	r := d.IntN(len(d.plan.Regions))
	const second = allocator.Second
	for each := range d.plan.Regions {
		d.ask(each, second, d.plan.Heal-1, units)
	}
	down := d.within(10, min(20, d.plan.Heal/second-4)) * second
	d.add(Act{Do: StoreDown, Region: r, Peer: -1, At: down,
		For: min(d.within(2, 10)*second, d.plan.Heal-down)})
}
