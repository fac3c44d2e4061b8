package sim

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// touch has the ledger of a bucket checked, because a call under a generation may have moved its
// rights. If the call reached the store, and was not refused before it came to the bucket, the node
// also learned whether the bucket still exists.
func (n *node) touch(id string, generation uint64) {
	b := n.w.bucket(id)
	if b != nil && n.r.reached(b) && !n.refused() && generation == n.r.generation &&
		n.r.store.holds(n.w.keyOf(b)) {
		n.uses(b)
	}
	n.w.moves(b)
}

// moves has the ledger of a bucket checked after this occurrence. A nil bucket is ignored.
func (w *world) moves(b *bucket) {
	if b == nil || b.moved {
		return
	}
	b.moved = true
	w.moved = append(w.moved, b)
}

// checkMoved checks the ledgers of all buckets whose rights may have moved.
func (w *world) checkMoved() {
	for _, b := range w.moved {
		b.moved = false
		w.checkLedger(b)
	}
	w.moved = w.moved[:0]
}

// holding is the content of one region's store for a bucket.
type holding struct {
	algorithms.Inspected
	known bool
	out   []lentOf // what it lends of its own rights, by cell
}

type lentOf struct {
	cell         quantity.Cell
	units, burst quantity.Units
}

// checkLedger checks conservation: the shares of a cell add up to at most the limit, no region
// lends more than it may, no region counts rights that it was not given, and no row falls.
func (w *world) checkLedger(b *bucket) {
	held := make([]holding, len(w.regions))
	var bursts, free quantity.Units
	for i, r := range w.regions {
		if b.gone[i] == nil && !r.stale {
			held[i].Inspected, held[i].known = r.store.inspect(b)
			b.unseen[i] = !held[i].known
		}
		if b.spec != nil {
			bursts += b.spec.Bursts[r.name]
		}
		if held[i].known {
			free += held[i].Free
			w.checkLent(b, r, &held[i])
			w.checkRises(b, r, &held[i])
		}
	}
	w.checkShares(b, held)
	w.checkGiven(b, held)
	if b.limit.kind() == algorithms.TokenBucket && len(b.allowances) == 0 && len(w.plan.Versions) == 0 && w.back+w.plan.drifted() == 0 &&
		free > bursts {
		w.breaks("conservation", "limit %s key %d: regions have %d tokens of %d",
			b.limit.policy.Name, b.key, free, bursts)
	}
}

// checkShares checks that the shares of each cell add up to at most the limit, and that no region
// has used more than its share.
func (w *world) checkShares(b *bucket, held []holding) {
	for i := range held {
		if !held[i].known {
			continue
		}
		for cell := max(held[i].Cell, b.excused+1); cell <= held[i].Cell+1; cell++ {
			var sum quantity.Units
			for j := range held {
				switch {
				case !held[j].known || w.regions[j].excluded() != "":
				case held[j].Cell == cell:
					sum += max(held[j].Share, 0)
				case held[j].Cell+1 == cell:
					sum += max(held[j].NextShare, 0)
				}
			}
			// Rights of a cell may be moved before it opens, by the documents of then.
			if total := b.most(min(b.cells().Opens(cell), w.earliest()), b.cells().Opens(cell+1)-1); sum > total {
				w.breaks("conservation", "limit %s key %d: shares of cell %d add up to %d of %d",
					b.limit.policy.Name, b.key, cell, sum, total)
			}
		}
		used := held[i].Used
		if b.limit.kind() == algorithms.FixedWindow && !b.limit.owes() && used > held[i].Share && len(w.plan.Versions) == 0 &&
			!b.spentAlone(w.regions[i]) && w.regions[i].losses == 0 && b.lost[i] == 0 {
			w.breaks("local", "limit %s key %d: %s has used %d of a share of %d",
				b.limit.policy.Name, b.key, w.regions[i].name, used, held[i].Share)
		}
	}
}

// checkLent checks that a region does not lend more of its own rights than it may.
func (w *world) checkLent(b *bucket, r *region, h *holding) {
	f, burst := b.entitled(r.index)
	f, burst = allocator.Part(f, b.lending()), allocator.Part(burst, b.lending())
	for _, row := range h.Rows {
		if row.Peer[0] == '=' { // what nodes assign is no loan
			continue
		}
		if n := len(h.out); n == 0 || h.out[n-1].cell != row.Cell {
			h.out = append(h.out, lentOf{cell: row.Cell})
		}
		o := &h.out[len(h.out)-1]
		o.units += row.Lent - row.Regained
		o.burst += row.BurstLent
		// After a loss not all returns are known: more counts as lent than was lent.
		restored := row.Cell <= b.lost[r.index]
		if (o.units > f || o.burst > burst) && !restored {
			w.breaks("conservation",
				"limit %s key %d: %s lends %d units and %d of burst of cell %d, and may lend %d and %d: %+v",
				b.limit.policy.Name, b.key, r.name, o.units, o.burst, row.Cell, f, burst, h.Rows)
		}
	}
}

// checkRises checks that no value of a row falls, and that no more came back than was lent.
func (w *world) checkRises(b *bucket, r *region, h *holding) {
	for _, row := range h.Rows {
		b.flows[r.index].moves(row.Peer, row.Cell, h.Cell, row.Row)
		if row.Regained > row.Lent || row.Returned > row.Borrowed {
			w.breaks("rows", "limit %s key %d: %s has %+v with %s of cell %d: more came back than was lent", b.limit.policy.Name, b.key, r.name, row.Row, row.Peer, row.Cell)
		}
		// Skip rows of no particular peer, and rows that a loss may have changed.
		if row.Peer == "" || row.Peer[0] == '?' || row.Cell <= b.lost[r.index] {
			continue
		}
		k := seenRow{r.index, row.Peer, row.Cell}
		was := b.seen[k]
		if row.Lent < was.Lent || row.Returned < was.Returned || row.Borrowed < was.Borrowed ||
			row.Regained < was.Regained ||
			row.BurstLent < was.BurstLent || row.BurstBorrowed < was.BurstBorrowed {
			w.breaks("rows", "limit %s key %d: %s had %+v with %s of cell %d, and has %+v",
				b.limit.policy.Name, b.key, r.name, was, row.Peer, row.Cell, row.Row)
		}
		b.seen[k] = row.Row
	}
}

// checkGiven checks that no region counts rights that its peer did not give. It skips the cells
// that a loss or a printed excess may concern: there a region may know of rights from other sources
// than the peer's rows, such as journals.
func (w *world) checkGiven(b *bucket, held []holding) {
	for i, r := range w.regions {
		for _, row := range held[i].Rows {
			j := w.indexOf(row.Peer)
			if j < 0 || !held[j].known || row.Cell <= b.excused || row.Cell <= b.lost[i] ||
				row.Cell <= b.lost[j] || row.Cell < held[j].Cell || row.Cell > held[j].Cell+1 {
				continue
			}
			given := rowOf(held[j].Rows, row.Cell, r.name)
			if row.Borrowed > given.Lent || row.Regained > given.Returned ||
				row.BurstBorrowed > given.BurstLent {
				w.breaks("conservation",
					"limit %s key %d, cell %d: %s counts %+v of what %s has as %+v",
					b.limit.policy.Name, b.key, row.Cell, r.name, row.Row, row.Peer, given)
			}
		}
	}
}

func (w *world) indexOf(name string) int {
	for i, r := range w.regions {
		if r.name == name {
			return i
		}
	}
	return -1
}

func rowOf(rows []algorithms.PeerRow, cell quantity.Cell, peer string) algorithms.Row {
	for _, row := range rows {
		if row.Cell == cell && row.Peer == peer {
			return row.Row
		}
	}
	return algorithms.Row{}
}

// noteEvent records what a node's journal has stored, and under which generation its store is open.
func (n *node) noteEvent(e exchange.Event) {
	n.tellEvent(e)
	switch e := e.(type) {
	case exchange.Lent:
		n.noteMoved(e)
		n.checkAsked(e)
	case exchange.Lost:
		for _, l := range e.Buckets {
			if b := n.w.bucket(l.Bucket.ID); b != nil && b.gone[n.r.index] != nil {
				b.gone[n.r.index].noticed = true
			}
		}
	case exchange.Restored:
		if b := n.w.bucket(e.Restore.Bucket.ID); b != nil {
			n.restored(b, e)
		}
	case exchange.TenureChanged:
		n.r.stands(e.Generation, n)
	case exchange.Recorded:
		n.noteRecorded(e)
	}
}

// noteRecorded records which rows a node's journal has stored. Only what raises a row also writes
// down the store's time.
func (n *node) noteRecorded(r exchange.Recorded) {
	raised := false
	for _, row := range n.recording[r.ID] {
		if r.OK {
			id := rowID{row.Bucket, row.Peer, row.Cell}
			was := n.durable[id]
			now := was
			now.Lent, now.Returned, now.Burst = max(was.Lent, row.Lent),
				max(was.Returned, row.Returned), max(was.Burst, row.Burst)
			n.durable[id], raised = now, raised || now != was
		}
	}
	delete(n.recording, r.ID)
	if raised {
		n.notes()
	}
}

// checkAsked checks that debits give no more than was asked for, even if it was asked for several
// times. It skips runs with the Lua, where ledgers are inspected rarely and the earlier rows are
// not known.
func (n *node) checkAsked(e exchange.Lent) {
	defer delete(n.lending, e.ID)
	if n.w.plan.Lua || n.r.stale {
		return
	}
	for i, l := range n.lending[e.ID] {
		b, g := n.w.bucket(l.Bucket.ID), e.Given[i]
		// Rows of a restored cell were not seen before.
		if b == nil || g.Status != algorithms.StatusOK || l.Cell <= b.lost[n.r.index] ||
			b.unseen[n.r.index] {
			continue
		}
		was := b.seen[seenRow{n.r.index, l.Peer, l.Cell}]
		// One message may ask twice: for units, and for burst.
		for _, other := range n.lending[e.ID] {
			if other.Bucket.ID == l.Bucket.ID && other.Cell == l.Cell {
				l.Lent, l.Returned, l.Burst = max(l.Lent, other.Lent),
					max(l.Returned, other.Returned), max(l.Burst, other.Burst)
			}
		}
		if g.Row.Lent > max(l.Lent, was.Lent) || g.Row.Returned > max(l.Returned, was.Returned) ||
			g.Row.BurstLent > max(l.Burst, was.BurstLent) {
			n.w.breaks("asked", "limit %s key %d: %s was asked by %s to reach %d lent, %d returned and %d of burst, had %+v, and has %+v",
				b.limit.policy.Name, b.key, n.name, l.Peer, l.Lent, l.Returned, l.Burst, was, g.Row)
		}
	}
}

// checkDurable checks that a reply announces no row that the journal has not stored.
func (n *node) checkDurable(m exchange.Message, r exchange.Reply) {
	for i, g := range r.Grants {
		if i >= len(m.Asks) || g.Refusal != exchange.NotRefused {
			continue
		}
		row := n.durable[rowID{m.Asks[i].Bucket, m.From, g.Cell}]
		if g.Lent > row.Lent || g.Returned > row.Returned || g.Burst > row.Burst {
			n.w.breaks("journal",
				"%s announces %d lent, %d returned, %d of burst to %s of cell %d, and its journal has %d, %d and %d",
				n.name, g.Lent, g.Returned, g.Burst, m.From, g.Cell, row.Lent, row.Returned,
				row.Burst)
		}
	}
}

// checkHeard checks that a node lends nothing to a region that has not answered it for long: both
// would lose the units. A node that was paused may finish what it had begun before.
func (n *node) checkHeard(l exchange.Lend) {
	const long = exchange.DegradedAfter + allocator.Second/5
	i := n.w.indexOf(l.Peer)
	if i < 0 || n.w.now-max(n.heard[i], n.born, n.paused) > long {
		n.w.breaks("void", "%s lends to %s, which has not answered for %d µs", n.name, l.Peer,
			n.w.now-n.heard[i])
	}
}

// checkSplit checks that a region is at its fixed split once it has long been cut off from all
// others.
func (n *node) checkSplit(b *bucket, d admit.Decision) {
	// Messages that left before the cut have arrived after this time.
	const underway = lateBy + 3*allocator.Second
	r, w := n.r, n.w
	if r.alone < 0 || b.spec == nil || w.back > 0 || len(w.plan.Versions) > 0 {
		return
	}
	opened := w.now - d.At.Sub(b.cells().Opens(d.Cell))
	if opened < r.alone+underway+b.cell() {
		return
	}
	f := b.spec.Entitlements[r.name]
	if d.Share > f || b.limit.kind() == algorithms.FixedWindow && d.Share != f && r.losses == 0 &&
		b.lost[r.index] == 0 {
		w.breaks("fallback",
			"limit %s key %d: %s is cut off since %.3fs, and holds %d of cell %d, its fixed split being %d",
			b.limit.policy.Name, b.key, r.name, float64(r.alone)/1e6, d.Share, d.Cell, f)
	}
}

// noteCuts records since when each region is cut off from all others.
func (w *world) noteCuts() {
	for i, r := range w.regions {
		alone := len(w.regions) > 1
		for j := range w.regions {
			alone = alone && (i == j || w.wires[i][j].cut > 0 || w.wires[j][i].cut > 0)
		}
		switch {
		case !alone:
			r.alone = -1
		case r.alone < 0:
			r.alone = w.now
		}
	}
}
