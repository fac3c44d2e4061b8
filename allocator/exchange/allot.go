package exchange

import (
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// flowLife is how long a Flow is believed if nobody repeats it, in microseconds.
const flowLife = 3 * allocator.Second

// flow is what Envoys admit and deny, turned into units tick by tick.
type flow struct {
	Flow
	told quantity.NodeTime
	// what is still to be counted, in billionths of a unit: thousandths a second times microseconds
	restAdmitted, restDenied int64
}

func (f *flow) tell(now quantity.NodeTime, told Flow) { f.Flow, f.told = told, now }

// since returns the units of a time in microseconds, at most of a second.
func (f *flow) since(elapsed int64) (admitted, denied quantity.Units) {
	count := func(rest *int64, rate quantity.MilliRate) quantity.Units {
		*rest += int64(min(rate, mostFlow)) * min(elapsed, allocator.Second)
		units := *rest / billion
		*rest %= billion
		return quantity.Units(units)
	}
	return count(&f.restAdmitted, f.Admitted), count(&f.restDenied, f.Denied)
}

const (
	billion = 1_000_000_000
	// mostFlow bounds the rate of a flow, so that a second of it can be computed with.
	mostFlow = 1 << 42
)

// flows counts what Envoys have admitted and denied of a bucket since the last tick.
func (m *Machine) flows(now quantity.NodeTime, v *view) {
	if !v.flow.Told {
		return
	}
	if now.Sub(v.flow.told) > flowLife {
		v.flow = flow{}
		return
	}
	admitted, denied := v.flow.since(now.Sub(v.sampled))
	v.asked.Add(allocator.Requests{Admitted: admitted, Denied: denied, Squares: uint64(admitted + denied)})
	if denied > 0 {
		v.deniedAt = now
		m.stats.DeniedWithSpare += min(denied, m.saidSpare(now, v))
	}
}

// allot works out how much this node may assign to Envoys of its region's part of the water-fill. A
// node keeps to that part, because borrowed rights can be given back only if no Envoy has them. It
// tells the number only if that is less than its Envoys want.
//
// Nodes of a region divide what it has now, less what its store keeps. What it is still to borrow
// may never come: a silent peer counts as idle. By parts of that, the node that asks first for a
// cell would hold all there is of it, and the others nothing, cell after cell.
func (m *Machine) allot(now quantity.NodeTime, v *view) {
	if !v.Assigned || !v.frame.Bucket || v.mean == 0 {
		return
	}
	own, region := v.mean, v.mean+v.mates.rate(now)
	m.demand(now, v, v.state.Cell, allocator.Over(region, v.Window))
	target := m.scratch.WaterFill(m.demanders)[0]
	m.rates = m.rates[:0]
	if v.mates != nil {
		for i := range v.mates.nodes {
			if t := &v.mates.nodes[i]; t.fresh(now) {
				m.rates = append(m.rates, t.Rate)
			}
		}
	}
	if len(m.rates) > 0 {
		target = min(target, v.state.Share-allocator.Unassigned(v.entitlement()))
	}
	part := m.scratch.NodePart(target, own, m.rates, v.Window)
	if part < allocator.Over(own, v.Window) {
		m.out.Allotments = append(m.out.Allotments, Allotment{v.ID, part})
	}
}
