package exchange

import (
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// dealing is what a node knows of one peer's part in a bucket. A tick goes through all dealings, so
// what it reads of each lies together in memory.
type dealing struct {
	peer  *peer
	turn  turn // why the bucket waits to ask this peer, if it does
	part  allocator.RegionPart
	large large // that the peer asked for last, and when
	// burst is how many tokens the peer's last answer said that it has to lend, and burstAt when.
	burst   quantity.Units
	burstAt quantity.NodeTime
	*voices // nil: the peer has said nothing of the bucket
	cells   [2]position
	// weighed is what was lent to the peer in weighedCell, an earlier one than those of cells: the most
	// of those that may still weigh.
	weighed     quantity.Units
	weighedCell quantity.Cell
}

// part returns a region's part of a bucket.
func (b *Bucket) part(region string) allocator.RegionPart {
	return allocator.RegionPartOf(b.Entitlements[region], b.Bursts[region], b.Limit, b.Lending,
		b.Borrowing)
}

// setPeers gives a view one dealing for each of the peers, in their order. It keeps what was known
// of peers that stay and drops the others.
func (v *view) setPeers(peers []*peer) {
	old := v.dealings
	v.dealings = make([]dealing, len(peers))
	for i, p := range peers {
		d := &v.dealings[i]
		if at := slices.IndexFunc(old, func(d dealing) bool { return d.peer == p }); at >= 0 {
			*d = old[at]
		}
		d.peer = p
	}
	v.lookUpParts()
}

// lookUpParts computes every region's part of the bucket. Only the document decides it, so it is
// done once for each document.
func (v *view) lookUpParts() {
	v.frame = v.frameOf()
	v.own = v.part(v.self)
	for i := range v.dealings {
		v.dealings[i].part = v.part(v.dealings[i].peer.name)
	}
}

// position is the ledger row with one peer for one cell, as far as this node has seen it, and what
// was asked of the peer lately. Times are node time.
type position struct {
	cell quantity.Cell
	// asked for and not answered, or announced and not credited yet
	pending           gain
	refusedUntil      quantity.NodeTime // the peer gives nothing before this time
	spare             quantity.Units    // units the peer's last answer said it has left
	spareAt           quantity.NodeTime // when it said so; 0: it has not
	burstRefusedUntil quantity.NodeTime // the peer gives no tokens before this time
	row               algorithms.Row    // of the ledger as last seen; it only rises
	announced         announced
	// microseconds after which the peer may have more, by its last answer
	pace    int64
	askedAt quantity.NodeTime // when it was asked last
}

// announced is what this region has gained from a peer in one row: what our store has credited, and
// what the peer announced and our store has not credited yet.
type announced struct{ borrowed, regained, burst quantity.Units }

func (a *announced) raise(borrowed, regained, burst quantity.Units) {
	a.borrowed, a.regained, a.burst = max(a.borrowed, borrowed), max(a.regained, regained),
		max(a.burst, burst)
}

// raise raises the row to what the store showed.
func (p *position) raise(seen algorithms.Row) {
	r := &p.row
	r.Lent, r.Returned = max(r.Lent, seen.Lent), max(r.Returned, seen.Returned)
	r.Borrowed, r.Regained = max(r.Borrowed, seen.Borrowed), max(r.Regained, seen.Regained)
	r.BurstLent, r.BurstBorrowed = max(r.BurstLent, seen.BurstLent), max(r.BurstBorrowed,
		seen.BurstBorrowed)
	p.announced.raise(seen.Borrowed, seen.Regained, seen.BurstBorrowed)
}

// lends returns how many units of the cell the peer has lent this region, less what went back.
func (p *position) lends() quantity.Units { return p.row.Borrowed - p.row.Returned }

// out returns how many units of the cell this region has lent the peer, less what came back.
func (p *position) out() quantity.Units { return p.row.Lent - p.row.Regained }

// forgetAnnounced forgets what the peer announced and our store has not credited. The next ask
// makes the peer announce it again.
func (p *position) forgetAnnounced() {
	p.announced = announced{borrowed: p.row.Borrowed, regained: p.row.Regained,
		burst: p.row.BurstBorrowed}
}

// at returns the position of a cell. It keeps two cells: a newer one replaces the older of them.
// For a cell that is already replaced it returns a position that is not stored.
func (d *dealing) at(cell quantity.Cell) *position {
	p := &d.cells[cell&1]
	switch {
	case p.cell < cell:
		d.noteWeighs(p)
		*p = position{cell: cell}
	case p.cell > cell:
		return &position{cell: cell}
	}
	return p
}

// noteWeighs notes what was lent in a cell whose position is replaced.
func (d *dealing) noteWeighs(p *position) {
	if out := p.out(); out > 0 && out >= d.weighed {
		d.weighed, d.weighedCell = out, p.cell
	}
}

// weighs returns how many units are missing here in a cell because of what the peer was lent before it,
// as far as this node knows: lending it as many in the cell costs nothing. It is 0 unless entries weigh
// for a window.
func (v *view) weighs(d *dealing, cell quantity.Cell) quantity.Units {
	if !v.frame.WholeEntries {
		return 0
	}
	if v.Cells().Opens(d.weighedCell+1).Add(v.Window+v.ClockMargin) <= v.Cells().Opens(cell) {
		d.weighed = 0
	}
	most := d.weighed
	for i := range d.cells {
		if p := &d.cells[i]; p.cell < cell {
			most = max(most, p.out())
		}
	}
	return most
}

// weighElsewhere returns how many units other peers were lent that weigh in a cell and are not lent
// for it yet. The cost that they were gathered for may not be admitted yet.
func (v *view) weighElsewhere(than *dealing, cell quantity.Cell) (units quantity.Units) {
	for i := range v.dealings {
		if d := &v.dealings[i]; d != than {
			units += max(v.weighs(d, cell)-d.at(cell).out(), 0)
		}
	}
	return units
}

// hasMoved reports whether this node knows of rights that moved in a cell or the next. Such a view
// must not be dropped: an ask names the sums that rows should reach, so a node that forgot a row
// would ask for what it already has.
func (v *view) hasMoved(cell quantity.Cell) bool {
	for i := range v.dealings {
		for j := range v.dealings[i].cells {
			p := &v.dealings[i].cells[j]
			if p.cell >= cell && p.row != (algorithms.Row{}) {
				return true
			}
		}
	}
	return false
}

// with is dealing for a peer of the document in force. It finds the peer by its index.
func (v *view) with(p *peer) *dealing {
	if p.index < len(v.dealings) && v.dealings[p.index].peer == p {
		return &v.dealings[p.index]
	}
	return v.dealing(p.name)
}

// dealing returns what is known of a peer's part. For a region that is no peer it returns a value
// that is not stored.
func (v *view) dealing(peer string) *dealing {
	for i := range v.dealings {
		if d := &v.dealings[i]; d.peer.name == peer {
			return d
		}
	}
	return &dealing{}
}
