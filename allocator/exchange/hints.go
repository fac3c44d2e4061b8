package exchange

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// maxNodes bounds how many nodes of one region are listened to about one bucket.
const maxNodes = 16

// heardHint is the last hint of a node, the node time when it was heard, and how long it is
// believed, in microseconds.
type heardHint struct {
	Hint
	at   quantity.NodeTime
	life int64
}

// nodes holds the last hints of the nodes of one region about one bucket, in the order of the
// nodes' names. Each node reports only its own demand, because only it saw its requests. Everything
// else in a hint is about the whole region, read from its one store.
type nodes []heardHint

// hear takes in a hint. If maxNodes others are known, it forgets the one that was silent longest.
func (n nodes) hear(h Hint, now quantity.NodeTime, life int64) nodes {
	i, known := slices.BinarySearchFunc(n, h.Node,
		func(t heardHint, name string) int { return strings.Compare(t.Node, name) })
	if known {
		n[i] = heardHint{h, now, life}
		return n
	}
	if len(n) >= maxNodes {
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
	return slices.Insert(n, i, heardHint{h, now, life})
}

func (t *heardHint) fresh(now quantity.NodeTime) bool { return now.Sub(t.at) <= t.life }

// voices holds the hints of one region's nodes about one bucket, and the sum of them as one region.
// The sum is computed once and kept until another hint arrives or one expires, because the plan
// reads it a dozen times a tick.
type voices struct {
	holds  quantity.NodeTime // node time up to which said holds; 0: said is not computed
	saidAt quantity.NodeTime // when the newest hint was heard; 0: no hint is believed
	nodes
	said Hint // what all nodes say together
}

// hear takes in a hint.
func (s *voices) hear(h Hint, now quantity.NodeTime, life int64) {
	s.nodes = s.nodes.hear(h, now, life)
	s.holds = 0
}

// together returns nodes.together, from its memory where that still holds. now must never go back.
// The hint means nothing if at is 0; otherwise the caller must not change it. s may be nil.
func (s *voices) together(now quantity.NodeTime) (h *Hint, at quantity.NodeTime) {
	if s == nil {
		return nil, 0
	}
	if now > s.holds {
		s.said, s.saidAt = s.nodes.together(now)
		s.holds = s.nodes.believedUntil(now)
	}
	return &s.said, s.saidAt
}

// rate returns the demand of all nodes that are believed, in milliunits per second. s may be nil.
func (s *voices) rate(now quantity.NodeTime) quantity.MilliRate {
	h, at := s.together(now)
	if at == 0 {
		return 0
	}
	return h.Rate
}

// capped returns what capped classes are admitted on all nodes that were believed when they were last
// asked about. s may be nil.
func (s *voices) capped() quantity.MilliRate {
	if s == nil || s.saidAt == 0 {
		return 0
	}
	return s.said.Capped
}

// anyFresh reports whether any of the hints is still believed.
func (n nodes) anyFresh(now quantity.NodeTime) bool {
	for i := range n {
		if n[i].fresh(now) {
			return true
		}
	}
	return false
}

// believedUntil returns the node time at which the first of the hints believed now expires.
func (n nodes) believedUntil(now quantity.NodeTime) quantity.NodeTime {
	until := quantity.NodeTime(math.MaxInt64)
	for i := range n {
		if t := &n[i]; t.fresh(now) {
			until = min(until, t.at.Add(t.life))
		}
	}
	return until
}

// rates returns the demand of all nodes that are believed, and what their capped classes are admitted,
// in milliunits per second.
func (n nodes) rates(now quantity.NodeTime) (sum, capped quantity.MilliRate) {
	for i := range n {
		if t := &n[i]; t.fresh(now) {
			sum, capped = sum+t.Rate, capped+t.Capped
		}
	}
	return min(sum, algorithms.MaxUnits), min(capped, algorithms.MaxUnits)
}

// large returns the largest of the costs that they want, of all nodes that are believed.
func (n nodes) large(now quantity.NodeTime) (most quantity.Units) {
	for i := range n {
		if t := &n[i]; t.fresh(now) {
			most = max(most, t.Large)
		}
	}
	return most
}

// together returns what the nodes say as one region, and when the newest hint was heard (0: no hint
// is believed any more). The demand is the sum over all nodes, the large
// cost the largest. Everything else comes from one hint:
// the newest of those about the latest cell. Hints of the other nodes are about the same store, as
// it was a moment before. Adding up the totals would count the same use once for every node, and
// the smallest spare could be from before rights came back.
func (n nodes) together(now quantity.NodeTime) (h Hint, at quantity.NodeTime) {
	for i := range n {
		t := &n[i]
		if t.fresh(now) && (at == 0 || cmp.Or(cmp.Compare(t.Cell, h.Cell),
			cmp.Compare(t.at, at)) > 0) {
			h, at = t.Hint, t.at
		}
	}
	h.Rate, h.Capped = n.rates(now)
	h.Large = n.large(now)
	return h, at
}

// onHeard notes a hint, after cutting its numbers to a range that can be computed with. It notes a
// peer region's hint only for buckets in view. It notes a hint of a mate (a node of this region)
// for any bucket, because a peer may ask this node for rights of a bucket that only its mates use.
func (m *Machine) onHeard(now quantity.NodeTime, h Hint) {
	if m.noHints {
		return
	}
	if h.Cell < 0 {
		return
	}
	bound := func(units quantity.Units) quantity.Units {
		return min(max(units, 0), algorithms.MaxUnits)
	}
	h.Used, h.Total, h.Share = bound(h.Used), bound(h.Total), bound(h.Share)
	h.Large = bound(h.Large)
	h.Spare, h.SpareBurst = bound(h.Spare), bound(h.SpareBurst)
	h.Rate, h.Capped = min(max(h.Rate, 0), algorithms.MaxUnits), min(max(h.Capped, 0), algorithms.MaxUnits)
	if h.Region == m.region {
		m.noteMate(now, h)
		return
	}
	v := m.views[h.Bucket]
	if v == nil || m.peer(h.Region) == nil || h.Cell > m.lastCell(now, v) {
		return
	}
	d := v.dealing(h.Region)
	if d.voices == nil {
		d.voices = &voices{}
	}
	d.hear(h, now, allocator.HintLife(v.Cell))
	if h.Total > d.part.Entitlement { // it will ask us soon
		v.askedAt = now
	}
}

// lastCell returns the last cell that any believable store clock may be in. A hint about a later
// cell must be refused: it would count as the newest of its region until it expires, whatever the
// region's other nodes say.
func (m *Machine) lastCell(now quantity.NodeTime, v *view) quantity.Cell {
	return v.Cells().At(m.storeTime(now) + algorithms.MaxClockStep)
}

// noteMate notes a hint of another node of this region. If the bucket is not in view, the hint is
// believed for the shortest time. A mate's hint alone gives no reason to publish: two mates would
// otherwise make each other publish for ever.
func (m *Machine) noteMate(now quantity.NodeTime, h Hint) {
	known := m.mates[h.Bucket]
	v := m.views[h.Bucket]
	if h.Node == m.node || known == nil && len(m.mates) >= MaxBuckets || v != nil &&
		h.Cell > m.lastCell(now, v) {
		return
	}
	if known == nil {
		known = &voices{}
		m.mates[h.Bucket] = known
	}
	life := allocator.HintLife(0)
	if v != nil {
		life = allocator.HintLife(v.Cell)
		v.mates = known
	}
	known.hear(h, now, life)
}

// forgetMates drops the hints of mates that are no longer believed.
func (m *Machine) forgetMates(now quantity.NodeTime) {
	maps.DeleteFunc(m.mates, func(_ string, s *voices) bool { return !s.nodes.anyFresh(now) })
}

// rate returns the demand in this region as of the last tick, in milliunits per second, including
// what its other nodes report.
func (m *Machine) rate(now quantity.NodeTime, v *view) quantity.MilliRate {
	return v.rate + v.mates.rate(now)
}

// rateNow returns the same, including what this node has seen since the last tick.
func (m *Machine) rateNow(now quantity.NodeTime, v *view) quantity.MilliRate {
	return v.rateNow(now) + v.mates.rate(now)
}

// publish sends a hint about a bucket if other regions care about it: a peer asked about it lately,
// this region's burst runs low, or the region wants more than its entitlement. With several nodes
// each publishes from its equal part of the entitlement on (allocator.Unremarkable). If the bucket
// asks once, a node does not send a hint that says only what others assume anyway.
func (m *Machine) publish(now quantity.NodeTime, v *view) {
	s := m.storeTime(now)
	cell := v.Cells().At(s)
	v.roll(cell)
	v.mean = allocator.Smoothed(v.mean, v.rate, v.demand.Spread())
	o, _ := v.outlook(cell, s, v.mean+v.mates.rate(now))
	large := m.ownLarge(now, v)
	concerns := large > 0 || v.shown.Large > 0 || v.askedAt > 0 && now.Sub(v.askedAt) <= idleAfter || m.sharesAssigned(v)
	if m.noHints || !concerns && allocator.Unremarkable(o.Total(), int64(m.nodes), v.own,
		v.state.Free) {
		return
	}
	h := Hint{Region: m.region, Node: m.node, Bucket: v.ID, Cell: cell, Used: o.Used,
		Total: max(o.Total(), o.Used+large),
		Rate:  v.mean, Share: v.state.Share, Large: large, Capped: v.capped}
	h.Spare, h.SpareBurst = m.spares(now, v, o)
	if v.asksOnce() && m.asAssumed(v, h) || now.Sub(v.shownAt) < allocator.HintEvery(v.Cell) &&
		!differs(v.shown, h, v) {
		return
	}
	v.shown, v.shownAt = h, now
	m.stats.HintsPublished++
	m.out.Hints = append(m.out.Hints, h)
}

// sharesAssigned reports whether the nodes of this region divide what they assign to Envoys. Each
// must know then what the others want, however little it is.
func (m *Machine) sharesAssigned(v *view) bool { return v.Assigned && m.nodes > 1 && v.mean > 0 }

// asAssumed reports whether the hint says no more than what others assume of a silent region: it is
// idle and has lent nothing. For a short cell it is enough that the region is idle: peers that care
// learn from its answers what it has lent.
func (m *Machine) asAssumed(v *view, h Hint) bool {
	return h.Total == 0 && h.Rate == 0 && h.Capped == 0 && v.shown.Large == 0 && v.shown.Rate == 0 && (!v.frame.Long() ||
		h.Spare == v.own.Lendable)
}

// spares returns how many units and tokens of the current cell this region would lend if it were
// asked now.
func (m *Machine) spares(now quantity.NodeTime, v *view, o allocator.Outlook) (units,
	burst quantity.Units) {
	var out, outBurst quantity.Units
	for i := range v.dealings {
		pos := v.dealings[i].at(v.state.Cell)
		out += pos.out()
		outBurst += pos.row.BurstLent
	}
	large := m.wantsLarge(now, v)
	burst = v.state.Free - max(allocator.KeptBurst(o, v.state.Share, m.grace()), large)
	counted := o.Used
	o.Used += m.margin(now, v, v.state.Cell, o)
	kept := allocator.Kept(o, counted, v.entitlement(), m.grace(), 0)
	if !v.frame.Bucket {
		kept = max(kept, large)
	}
	units = v.state.Share - counted - kept
	return allocator.Spare(units, v.own.Lendable, out), allocator.Spare(burst, v.own.LendableBurst,
		outBurst)
}

// differs reports whether a hint must be sent before its time: the demand has plainly changed or,
// for long cells, what the region can spare has.
func differs(old, now Hint, v *view) bool {
	if allocator.Changed(old.Rate, now.Rate, v.demand.Spread()) || (old.Large > 0) != (now.Large > 0) {
		return true
	}
	if !v.frame.Long() || old.Cell != now.Cell {
		return false
	}
	return allocator.WorthSaying(old.Spare, now.Spare, v.own.Entitlement) ||
		allocator.WorthSaying(old.SpareBurst, now.SpareBurst, v.own.Burst)
}
