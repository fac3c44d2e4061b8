package sim

import (
	"math"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// allowance is an excess above the ceiling that the printed bounds allow for one thing that
// happened. It holds in the cells that overlap from..to, and in no others.
type allowance struct {
	from, to quantity.StoreTime // store time, µs since 1970
	units    quantity.Units
	cause    string
}

// allow permits units above the ceiling for something that happens in a region now. The excess may
// show in the cell of this moment. For the sliding kinds it may show as long as use of now weighs.
// For a bucket it may show from now on for ever: a bucket that is always asked for all it has never
// makes up for the excess. If rights are concerned, it may also show in the next cell, for which
// rights may already have been promised, and the shares of both cells may not add up.
func (b *bucket) allow(r *region, units quantity.Units, cause string, rights bool) {
	from, to := r.clock().Add(min(r.storeAhead, 0)), r.latest()
	if rights {
		b.excused = max(b.excused, b.cells().At(to)+1)
	}
	switch k := b.limit.kind(); {
	case k.Bucket():
		to = math.MaxInt64
	case k.Sliding():
		to += quantity.StoreTime(2 * b.limit.policy.Window.Microseconds())
	case rights:
		to += quantity.StoreTime(b.cell())
	}
	b.allowFor(from, to, units, cause)
}

func (b *bucket) allowFor(from, to quantity.StoreTime, units quantity.Units, cause string) {
	if units <= 0 {
		return
	}
	for i := range b.allowances { // what is allowed unit by unit is one allowance
		a := &b.allowances[i]
		if a.cause == cause && b.cells().At(a.from) == b.cells().At(from) &&
			b.cells().At(a.to) == b.cells().At(to) {
			a.units += units
			return
		}
	}
	b.allowances = append(b.allowances, allowance{from, to, units, cause})
}

// allowedIn returns the units that may be admitted above the ceiling in a cell, and the causes.
func (b *bucket) allowedIn(cell quantity.Cell) (units quantity.Units, causes []string) {
	units = b.forClocks(cell)
	if units > 0 {
		causes = append(causes, "clocks apart")
	}
	for _, a := range b.allowances {
		if a.from < b.cells().Opens(cell+1) && b.cells().Opens(cell) <= a.to {
			units += a.units
			causes = append(causes, a.cause)
		}
	}
	return units, causes
}

// spentAlone identifies who admits without the store. For buckets, node and window are 0. journals
// is how many journals the node lost before, of buckets all nodes of the region: without its
// journal a node does not know what it spent.
type spentAlone struct {
	region, node, journals int
	window                 int64
}

// spentAlone reports whether any node of a region has ever admitted without the store.
func (b *bucket) spentAlone(r *region) bool {
	for who := range b.local {
		if who.region == r.index {
			return true
		}
	}
	return false
}

// spentLocally allows what the nodes of a region admit without their store, in addition to what the
// store has admitted: units, as far as the term for it reaches.
func (n *node) spentLocally(b *bucket, units quantity.Units) {
	if b.limit.policy.OnStoreFailure != policy.StoreFailureLocal {
		return
	}
	who := spentAlone{region: n.r.index}
	for _, other := range n.r.nodes {
		who.journals += other.journals
	}
	// Each node has a part in each window, by the latest time that the node knows.
	if !b.limit.kind().Bucket() {
		n.mark = max(n.mark, n.time().UnixMicro())
		who.node, who.journals = n.index, n.journals
		who.window = b.windowAt(quantity.StoreTime(n.mark))
	}
	if _, before := b.local[who]; !before {
		n.w.fired(rowStoreDown)
	}
	// Those that were started before a node was added go on with the part of one that is fewer.
	first := n.w.plan.Regions[n.r.index].Nodes
	reserved := b.limit.policy.Reserve() > 0 && who.journals == 0 && len(n.r.nodes) == first
	size := n.size
	if b.limit.kind().Bucket() {
		size = first
	}
	units = min(units, b.termLocal(n.r.index, size, len(n.r.nodes))-b.local[who])
	b.local[who] += units
	// What is kept out of the store is kept once for each window of the store.
	otherwise := who.window != b.windowAt(n.r.clock().Add(n.r.storeAhead))
	if !reserved || !b.limit.kind().Bucket() && otherwise {
		b.allow(n.r, units, "nodes of "+n.r.name+" without their store", false)
	}
}

// usage says when a node last admitted something of a bucket through its store.
type usage struct {
	now    int64              // µs since the start
	at     quantity.StoreTime // store time
	losses int                // how many times the store had lost data by then
}

// admits records that a node admitted units of a bucket through its store.
func (n *node) admits(b *bucket, d admit.Decision, units quantity.Units) {
	if d.At == 0 {
		return
	}
	n.lately[b] = usage{n.w.now, d.At, n.r.losses}
	n.onACopy(b, units)
	b.paces[n.r.index].add(n.w.now, b.windowAt(d.At), units)
}

// knows returns the store time until which a node knows that a bucket is in its store: the end of
// the cell in which the node last used it. It returns 0 if the node does not know.
func (n *node) knows(b *bucket) quantity.StoreTime {
	u, used := n.lately[b]
	if !used || u.losses != n.r.losses {
		return 0
	}
	return b.cells().Opens(b.cells().At(u.at) + 1)
}

// pace measures how fast a region admits units of one bucket.
type pace struct {
	last  []admission    // in the last second
	sum   quantity.Units // units of last
	peaks map[int64]quantity.Units
}

type admission struct {
	at    int64
	units quantity.Units
}

// add records units admitted at a time (µs since the start) in a window.
func (p *pace) add(at, window int64, units quantity.Units) {
	const second = 1_000_000
	p.last, p.sum = append(p.last, admission{at, units}), p.sum+units
	for p.last[0].at <= at-second {
		p.sum -= p.last[0].units
		p.last = p.last[1:]
	}
	if p.peaks == nil {
		p.peaks = map[int64]quantity.Units{}
	}
	p.peaks[window] = max(p.peaks[window], p.sum)
}

// fastest returns the most units admitted in any second from a window on, at least 1.
func (p *pace) fastest(first int64) quantity.Units {
	most := quantity.Units(1)
	for window, units := range p.peaks {
		if window >= first {
			most = max(most, units)
		}
	}
	return most
}
