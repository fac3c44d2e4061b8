package exchange

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

const (
	// hintLife is how long a hint is believed.
	hintLife = 3 * allocator.Second
	// mostNodes bounds the nodes of one region that are listened to about one bucket.
	mostNodes = 16
)

// told is what a node said last, and when that was heard.
type told struct {
	Hint
	at int64
}

// nodes is what the nodes of one region say of one bucket, in the order of their names. Each speaks for itself of its
// demand, for only it has seen what it decided; of everything else each speaks for the whole region, out of its one
// store.
type nodes []told

// hear takes in a hint. Where too many nodes speak, the one that was silent longest is forgotten.
func (n nodes) hear(h Hint, now int64) nodes {
	i, known := slices.BinarySearchFunc(n, h.Node, func(t told, name string) int { return strings.Compare(t.Node, name) })
	if known {
		n[i] = told{h, now}
		return n
	}
	if len(n) >= mostNodes {
		silent := 0
		for j := range n {
			if n[j].at < n[silent].at {
				silent = j
			}
		}
		n = slices.Delete(n, silent, silent+1)
		if silent < i {
			i--
		}
	}
	return slices.Insert(n, i, told{h, now})
}

func (t told) fresh(now int64) bool { return now-t.at <= hintLife }

// rate returns the demand of all nodes that are still believed, in milliunits per second.
func (n nodes) rate(now int64) (sum int64) {
	for _, t := range n {
		if t.fresh(now) {
			sum += t.Rate
		}
	}
	return min(sum, algorithms.MaxUnits)
}

// together returns what the nodes say as one region, and when the newest of it was heard; 0: nobody is believed any
// more. The demand is the sum. All else is the newest alone, that of the latest cell: an older word of another node is
// about the same store, some moments ago. The least spare of any would be what was left before somebody gave back, and the
// sum of the totals would count what is used once for every node.
func (n nodes) together(now int64) (h Hint, at int64) {
	for _, t := range n {
		if t.fresh(now) && (at == 0 || cmp.Or(cmp.Compare(t.Cell, h.Cell), cmp.Compare(t.at, at)) > 0) {
			h, at = t.Hint, t.at
		}
	}
	h.Rate = n.rate(now)
	return h, at
}

// heard notes a hint, after cutting its numbers to what can be computed with: of a peer region on a bucket in view, or
// of a mate, a node of this region, on any. A peer may ask this node for rights of a bucket that only its mates use.
func (m *Machine) heard(now int64, h Hint) {
	if m.noHints {
		return
	}
	bound := func(units int64) int64 { return min(max(units, 0), algorithms.MaxUnits) }
	h.Used, h.Total, h.Rate, h.Share = bound(h.Used), bound(h.Total), bound(h.Rate), bound(h.Share)
	h.Spare, h.SpareBurst = bound(h.Spare), bound(h.SpareBurst)
	if h.Region == m.region {
		m.heardMate(now, h)
		return
	}
	v := m.views[h.Bucket]
	if v == nil || m.peer(h.Region) == nil {
		return
	}
	d := v.dealing(h.Region)
	d.nodes = d.nodes.hear(h, now)
	v.asked = now
}

// heardMate notes a hint of a node of this region. That alone is no reason to publish: else two mates would keep each
// other at it for ever.
func (m *Machine) heardMate(now int64, h Hint) {
	known, ok := m.mates[h.Bucket]
	if h.Node == m.node || !ok && len(m.mates) >= MostBuckets {
		return
	}
	m.mates[h.Bucket] = known.hear(h, now)
}

// forgetMates drops what mates said that is not believed any more.
func (m *Machine) forgetMates(now int64) {
	maps.DeleteFunc(m.mates, func(_ string, n nodes) bool {
		return !slices.ContainsFunc(n, func(t told) bool { return t.fresh(now) })
	})
}

// rate returns the demand in this region, its mates' included, as of the last tick.
func (m *Machine) rate(now int64, v *view) int64 {
	return v.demand.Rate(v.Cell) + m.mates[v.ID].rate(now)
}

// rateNow is the same with what this node has seen since the last tick.
func (m *Machine) rateNow(now int64, v *view) int64 {
	return v.rateNow(now) + m.mates[v.ID].rate(now)
}

// publish hints at a bucket that other regions care about: one that is over half used in this region, or asked about.
func (m *Machine) publish(now int64, v *view) {
	s := now + m.offset
	cell := algorithms.CellAt(s, v.Cell)
	v.roll(cell)
	o, _ := v.outlook(cell, s, m.rate(now, v))
	concerns := v.asked > 0 && now-v.asked <= idleAfter
	if m.noHints || (!concerns && 2*o.Total() <= v.entitlement() && 2*v.state.Free >= v.Bursts[m.region]) {
		return
	}
	h := Hint{Region: m.region, Node: m.node, Bucket: v.ID, Cell: cell, Used: o.Used, Total: o.Total(),
		Rate: v.demand.Rate(v.Cell), Share: v.state.Share}
	h.Spare, h.SpareBurst = m.spares(v, o)
	if now-v.shownAt < allocator.Second && !differs(v.shown, h, v.entitlement(), v.Bursts[m.region]) {
		return
	}
	v.shown, v.shownAt = h, now
	m.stats.HintsPublished++
	m.out.Hints = append(m.out.Hints, h)
}

// spares returns what this region would lend of the current cell if it were asked now.
func (m *Machine) spares(v *view, o allocator.Outlook) (units, burst int64) {
	var out, outBurst int64
	for _, p := range m.peers {
		row := v.dealing(p.name).at(v.state.Cell).row
		out += row.Lent - row.Regained
		outBurst += row.BurstLent
	}
	units = v.state.Share - o.Used - allocator.Kept(o, o.Used, v.entitlement(), m.grace(), 0)
	burst = v.state.Free - allocator.KeptBurst(o, v.state.Share, m.grace())
	return max(min(units, v.lendable(m.region)-out), 0), max(min(burst, v.lendableBurst(m.region)-outBurst), 0)
}

// differs says whether a hint is worth sending before its time: another cell of a window, or a change of a twentieth.
func differs(old, now Hint, entitlement, burst int64) bool {
	far := func(a, b, of int64) bool { return max(a-b, b-a)*20 > of }
	return old.Cell != now.Cell || far(old.Rate, now.Rate, old.Rate) ||
		far(old.Share, now.Share, entitlement) || far(old.Spare, now.Spare, entitlement) ||
		far(old.SpareBurst, now.SpareBurst, burst)
}
