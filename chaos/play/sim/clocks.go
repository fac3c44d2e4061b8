package sim

import (
	"math"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// latest returns the latest time that the region's store can have shown, µs since 1970.
func (r *region) latest() quantity.StoreTime {
	return r.clock().Add(max(r.storeAhead, 0)).Add(r.w.back)
}

// apart records how far a region's clocks are from those of others, and allows the excess that the
// printed bounds state for it.
func (w *world) apart(r *region) {
	r.goesAhead()
	w.showed(r.ahead + r.storeAhead)
	w.reaches()
	r.stepped()
	r.overlooks()
}

// showed is apart for a store whose time is ahead by a number of µs.
func (w *world) showed(ahead int64) {
	w.ahead, w.behind = max(w.ahead, ahead), min(w.behind, ahead)
	w.back = w.ahead - w.behind // a clock that steps back is held where it was
	if n, by := len(w.steps), w.back+w.plan.drifted(); by > 0 && (n == 0 || w.steps[n-1].by < by) {
		w.steps = append(w.steps, clockStep{w.earliest(), by})
	}
}

// clockStep says by how many µs clocks may be apart from a time on.
type clockStep struct {
	from quantity.StoreTime // by the clock that was furthest behind
	by   int64
}

// earliest returns what the clock of a machine shows that is furthest behind.
func (w *world) earliest() quantity.StoreTime {
	first := quantity.StoreTime(math.MaxInt64)
	for _, r := range w.regions {
		first = min(first, r.clock().Add(min(r.storeAhead, 0)))
		for _, n := range r.nodes {
			first = min(first, r.clock().Add(n.ahead))
		}
	}
	return first
}

// forClocks returns what clocks that are apart may admit above the ceiling in a cell in real time.
// Labels are exact, so fixed windows exceed nothing.
func (b *bucket) forClocks(cell quantity.Cell) quantity.Units {
	apart := int64(0)
	for _, s := range b.limit.w.steps {
		if s.from < b.cells().Opens(cell+1) {
			apart = s.by
		}
	}
	if b.limit.kind() == algorithms.FixedWindow || apart == 0 {
		return 0
	}
	lent, burst := b.promised()
	nearer := min(apart, 2*b.cell()-1) // they may have been nearer when they traded
	return max(b.termClocks(apart, lent, burst), b.termClocks(nearer, lent, burst))
}

// drifted returns the farthest that clocks can have drifted apart by the end of the run, µs.
func (p *Plan) drifted() int64 {
	var fast, slow int64
	for _, r := range p.Regions {
		fast, slow = max(fast, r.Drift), min(slow, r.Drift)
	}
	return (fast - slow) * (p.End / allocator.Second)
}
