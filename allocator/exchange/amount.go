package exchange

import (
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// likely returns the demand by which this region asks, in milliunits per second. It is the demand
// on this node, smoothed unless it has plainly changed (allocator.Likely), plus the demand that the
// region's other nodes report.
func (m *Machine) likely(now quantity.NodeTime, v *view) quantity.MilliRate {
	return allocator.Likely(v.mean, v.rateNow(now), v.demand.Spread()) + v.mates.rate(now)
}

// target returns this region's target share of a cell, in units, if it wants total units of it.
func (m *Machine) target(now quantity.NodeTime, v *view, cell quantity.Cell,
	total quantity.Units) quantity.Units {
	m.demand(now, v, cell, total)
	return m.scratch.Target(m.demanders)
}

// demand sets what each region wants of a cell, this one first, which wants total units.
func (m *Machine) demand(now quantity.NodeTime, v *view, cell quantity.Cell,
	total quantity.Units) {
	m.demanders = append(m.demanders[:0], v.own.Demander(total))
	for i := range v.dealings {
		d := &v.dealings[i]
		m.demanders = append(m.demanders, d.part.Demander(v.expects(d, cell, now)))
	}
}
