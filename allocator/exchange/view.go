package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

const (
	// hintLife is how long a hint is believed.
	hintLife = 3 * allocator.Second
	// needLife is how long a region that denied stays in need: it asks at once for the whole of what it lacks.
	needLife = allocator.Second
	// answerLife is how long what a lender said it has left is believed, where no newer hint speaks of it.
	answerLife = 2 * Interval
	// idleAfter is how long a bucket is remembered that nobody uses or asks about.
	idleAfter = 10 * allocator.Second
)

// view is what a node knows of one bucket.
type view struct {
	*Bucket
	self     string
	state    algorithms.State // as last seen
	stateAt  int64            // store time of that
	demand   allocator.Demand
	sampled  int64 // when demand was last sampled
	admitted int64 // units since then
	denied   int64
	wanted   int64 // units that waiting requests lack of the current cell
	// wantedUntil is when nobody can still be waiting for them.
	wantedUntil int64
	wantedGot   bool  // some have come since
	deniedAt    int64 // when a request was last denied here; 0: never
	active      int64 // when it was last used here or asked about
	asked       int64 // when a peer last asked or hinted; 0: never
	shown       Hint  // last hint published
	shownAt     int64
	dealings    map[string]*dealing // by peer
}

// dealing is what a node knows of one peer's part in a bucket.
type dealing struct {
	hint    Hint
	heardAt int64 // 0: no hint
	cells   [2]position
}

// position is the ledger with one peer for one cell, as far as this node has seen it, and what was asked lately.
type position struct {
	cell         int64
	row          row
	pending      int64 // units asked for and not answered
	refusedUntil int64 // nothing will be had before
	spare        int64 // what the peer's last answer said it has left
	spareAt      int64 // 0: it has not said
}

// row is a row of the ledger as last seen; it only rises.
type row struct{ algorithms.Row }

func (r *row) take(seen algorithms.Row) {
	r.Lent, r.Returned = max(r.Lent, seen.Lent), max(r.Returned, seen.Returned)
	r.Borrowed, r.Regained = max(r.Borrowed, seen.Borrowed), max(r.Regained, seen.Regained)
}

// at returns the position of a cell; older cells are forgotten as newer ones come.
func (d *dealing) at(cell int64) *position {
	p := &d.cells[cell&1]
	switch {
	case p.cell < cell:
		*p = position{cell: cell}
	case p.cell > cell:
		return &position{cell: cell}
	}
	return p
}

func (v *view) dealing(peer string) *dealing {
	d := v.dealings[peer]
	if d == nil {
		d = &dealing{}
		v.dealings[peer] = d
	}
	return d
}

func (v *view) entitlement() int64 { return v.Entitlements[v.self] }

// observe takes a state of the store, as of a store time. Of an older one than is known only the use tells something.
func (v *view) observe(s algorithms.State, at int64) {
	switch {
	case s.Cell < v.state.Cell:
	case at >= v.stateAt:
		v.state, v.stateAt = s, at
	case s.Cell == v.state.Cell:
		v.state.Used = max(v.state.Used, s.Used)
	}
}

// roll moves the state to the given current cell.
func (v *view) roll(cell int64) {
	if cell <= v.state.Cell {
		return
	}
	share := v.entitlement()
	if cell == v.state.Cell+1 {
		share = v.state.NextShare
	}
	v.state = algorithms.State{Cell: cell, Entitlement: v.entitlement(), Share: share, NextShare: v.entitlement()}
}

// share returns the rights held of the state's cell or the one after.
func (v *view) share(cell int64) int64 {
	if cell == v.state.Cell {
		return v.state.Share
	}
	return v.state.NextShare
}

// setShare takes the share of a cell as of a store time.
func (v *view) setShare(cell, share, at int64) {
	v.stateAt = max(v.stateAt, at)
	switch cell {
	case v.state.Cell:
		v.state.Share = share
	case v.state.Cell + 1:
		v.state.NextShare = share
	}
}

// outlook returns what this region expects of the current cell or the next, at store time s, at a demand rate.
func (v *view) outlook(cell, s, rate int64) (o allocator.Outlook, opens int64) {
	if cell > algorithms.CellAt(s, v.Window) {
		return allocator.Outlook{Rate: rate, Ahead: v.Window}, cell*v.Window - s
	}
	return allocator.Outlook{Used: v.state.Used, Rate: rate, Ahead: (cell+1)*v.Window - s}, 0
}

// inNeed says whether requests were denied here lately.
func (v *view) inNeed(now int64) bool { return v.deniedAt > 0 && now-v.deniedAt <= needLife }

// rateNow returns the demand, what came since the last sample included. Half a sample's time must have passed before
// that says anything.
func (v *view) rateNow(now int64) int64 {
	if since := now - v.sampled; since >= Interval/2 {
		return v.demand.RateWith(v.Window, v.admitted, v.denied, since)
	}
	return v.demand.Rate(v.Window)
}

// expects returns what a peer is expected to admit in a cell, 0 for one that has not been heard of: it counts as
// idle.
func (v *view) expects(d *dealing, cell, s, now int64) int64 {
	if !d.fresh(now) {
		return 0
	}
	if cell == d.hint.Cell {
		return d.hint.Used + allocator.Over(d.hint.Rate, (cell+1)*v.Window-s)
	}
	return allocator.Over(d.hint.Rate, v.Window)
}

func (d *dealing) fresh(now int64) bool { return d.heardAt > 0 && now-d.heardAt <= hintLife }

// lendable returns the most a region may lend of a cell.
func (v *view) lendable(region string) int64 {
	return allocator.Part(v.Entitlements[region], v.Lending)
}

// borrowable returns the most a region may borrow of a cell.
func (v *view) borrowable(region string) int64 {
	if v.Borrowing < 0 {
		return v.Limit
	}
	return allocator.Part(v.Entitlements[region], v.Borrowing)
}

// spareOf returns what a peer may have to lend of a cell: by its last answer or its hint, whichever is newer; one
// that has said nothing is taken to be idle.
func (v *view) spareOf(peer string, d *dealing, cell, now int64) int64 {
	pos := d.at(cell)
	if now < pos.refusedUntil && d.heardAt <= pos.spareAt {
		return 0
	}
	if pos.spareAt > 0 && pos.spareAt >= d.heardAt && now-pos.spareAt <= answerLife {
		return pos.spare
	}
	limit := v.lendable(peer) - pos.row.Borrowed
	if !d.fresh(now) {
		return max(limit, 0)
	}
	if cell == d.hint.Cell {
		return max(min(limit, d.hint.Spare), 0)
	}
	return max(min(limit, v.Entitlements[peer]-allocator.Over(d.hint.Rate, v.Window)-pos.row.Borrowed), 0)
}
