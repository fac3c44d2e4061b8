package exchange

import (
	"cmp"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// Relief says when units of a bucket may be here that other regions hold now. Nobody promises that
// they come: the others may use them, or keep them.
type Relief struct {
	Bucket string
	Cell   quantity.Cell
	Units  quantity.Units // of the cell, or tokens, that may come at most
	Burst  quantity.Units // of them, tokens that come at once; a bucket's others come at a rate
	After  int64          // microseconds from a denial until some may be here; nothing if Units is 0
	// Unheard says that a region which may hold some does not answer, and may do so any time.
	Unheard bool
}

// maxUnheard bounds Relief.After while a region that may hold units does not answer, in
// microseconds: nobody knows when it will. Callers are spread over a quarter more, which makes a
// minute.
const maxUnheard = 48 * allocator.Second

// lacks is a span of time in which requests were denied here and no units came from other regions.
type lacks struct {
	since quantity.NodeTime
	in    quantity.Cell
	told  int64 // the last Relief.After
}

// denied takes in a denial. It begins another span if the callers of the last one, who came again
// when they were told to, were admitted.
func (l *lacks) denied(now, before quantity.NodeTime) {
	if now.Sub(before) > 2*max(needLife, l.told) {
		l.since = now
	}
}

// mayGive adds what a region may give: units apart from burst, and burst.
func (r *Relief) mayGive(units, burst quantity.Units, after int64) {
	if units+burst <= 0 {
		return
	}
	if r.Units == 0 || after < r.After {
		r.After = after
	}
	r.Units += units + burst
	r.Burst += burst
}

// FirstRelief returns the relief of a bucket that the machine knows nothing of. It counts every
// other region as idle, apart from what this region, which has a share, already holds of it. ages
// says which regions answer, and after how long.
func FirstRelief(b *Bucket, region string, share quantity.Units, ages []PeerAge) (r Relief) {
	own, frame := b.part(region), b.frameOf()
	for _, a := range ages {
		part := b.part(a.Peer)
		units, burst := min(part.Lendable, own.Borrowable), quantity.Units(0)
		if frame.LendsBurst {
			burst = part.LendableBurst
		}
		r.Unheard = r.Unheard || units+burst > 0 && a.Degraded
		r.mayGive(units, burst, answersWithin(a.Degraded, cmp.Or(a.RoundTrip, assumedRoundTrip)))
	}
	if !frame.Bucket {
		r.Units -= min(max(share-own.Entitlement, 0), r.Units)
	}
	if r.Units == 0 {
		return Relief{}
	}
	return r
}

// answersWithin returns after how long units may be here of a region that is asked now. One ask may
// bring nothing. A region that does not answer may do so again any time.
func answersWithin(degraded bool, roundTrip int64) int64 {
	if degraded {
		return DegradedAfter
	}
	return allocator.AskWithin(roundTrip, 0)
}

// relieve says when units may come for requests that were denied here. The longer none have come,
// the later it says.
func (m *Machine) relieve(now quantity.NodeTime, v *view) {
	cell := v.state.Cell
	if v.lacks.in != cell {
		v.lacks.since, v.lacks.in = now, cell
	}
	r := Relief{Bucket: v.ID, Cell: cell}
	room := v.own.Borrowable - v.borrowed(cell) + v.pending(cell).units
	for i, p := range m.peers {
		d := &v.dealings[i]
		units, burst := v.mayCome(now, d, room)
		r.Unheard = r.Unheard || units+burst > 0 && p.degraded(now)
		r.mayGive(units, burst, answersWithin(p.degraded(now), p.expected())+
			max(d.at(cell).refusedUntil.Sub(now), 0))
	}
	if r.After = max(r.After, now.Sub(v.lacks.since)/2); r.Unheard {
		r.After = min(r.After, maxUnheard)
	}
	v.lacks.told = r.After
	m.out.Reliefs = append(m.out.Reliefs, r)
}

// mayCome returns the most units of the current cell, and tokens, that may come from a peer: what
// it may lend and what it has of ours, less what it has used. room is what this region may still
// borrow.
func (v *view) mayCome(now quantity.NodeTime, d *dealing, room quantity.Units) (units, burst quantity.Units) {
	cell := v.state.Cell
	pos := d.at(cell)
	ours := max(pos.out(), 0)
	lends := max(min(d.part.Lendable-pos.lends(), room), 0)
	h, heardAt := d.together(now)
	switch {
	case heardAt == 0 || h.Cell != cell:
	case v.frame.Bucket:
		lends = min(lends, h.Spare)
	default:
		return min(ours+lends, max(h.Share-h.Used, 0)), 0
	}
	if v.frame.LendsBurst {
		burst = max(v.spareBurstOf(d, cell, now), 0)
	}
	return ours + lends, burst
}
