package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
)

const (
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
	rate     int64 // that demand tells, milliunits per second
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
	mean        int64 // this node's demand over the last second or so, milliunits per second
	shown       Hint  // last hint published
	shownAt     int64
	frame       allocator.Frame
	own         allocator.RegionPart
	dealings    []dealing // of each peer, in the machine's order
	mates       *voices   // what the other nodes of this region say; nil: nothing
}

// frameOf returns how the bucket divides time.
func (b *Bucket) frameOf() allocator.Frame {
	return allocator.FrameOf(b.Kind, b.Window, b.Cell)
}

// asksOnce says whether what the bucket lacks of a cell is asked for at once, when it is needed:
// where cells stand apart, so that at that time it is known best. Where use fades or rates count,
// what comes late is lost, and half of the gap is asked for at each tick.
func (v *view) asksOnce() bool { return v.frame.CellsApart }

// keepsAsking says whether a lender is asked again while its answer is under way: where use fades,
// for it has a little more to give at every moment.
func (v *view) keepsAsking() bool { return v.frame.Sliding }

func (v *view) entitlement() int64 { return v.own.Entitlement }

// observe takes a state of the store, as of a store time. Of an older one than is known only the use of the same fixed
// window tells something.
func (v *view) observe(s algorithms.State, at int64) {
	switch {
	case s.Cell < v.state.Cell:
	case at >= v.stateAt:
		v.state, v.stateAt = s, at
	case s.Cell == v.state.Cell && v.frame.CellsApart:
		v.state.Used = max(v.state.Used, s.Used)
		v.state.Free = max(v.state.Share-v.state.Used, 0)
	}
}

// roll moves the state to the given current cell.
func (v *view) roll(cell int64) { v.state = v.frame.Roll(v.state, cell, v.entitlement()) }

// isShut says whether a loss keeps the bucket closed at a store time: what is borrowed for then is of no use.
func (v *view) isShut(at int64) bool { return v.state.Shut > at }

// share returns the rights held of the state's cell or the one after.
func (v *view) share(cell int64) int64 {
	if cell == v.state.Cell {
		return v.state.Share
	}
	return v.state.NextShare
}

// outlook returns what this region expects of the current cell or the next, at a store time, at a
// demand rate, and how long it is until that cell opens.
func (v *view) outlook(cell, at, rate int64) (o allocator.Outlook, opens int64) {
	return v.frame.Outlook(v.state, cell, at, rate)
}

// inNeed says whether requests were denied here lately.
func (v *view) inNeed(now int64) bool { return v.deniedAt > 0 && now-v.deniedAt <= needLife }

// wants returns what is asked for at once in home mode.
func (v *view) wants(now int64) int64 { return allocator.HomeWants(v.wanted, v.inNeed(now)) }

// sample takes what was asked since the last sample into the demand.
func (v *view) sample(now int64) {
	v.demand.Sample(v.admitted, v.denied, now-v.sampled)
	v.rate = v.demand.Rate(v.Cell)
}

// rateNow returns this node's demand, what came since the last sample included.
func (v *view) rateNow(now int64) int64 {
	return v.demand.Latest(v.rate, v.admitted, v.denied, now-v.sampled)
}

// expects returns the most that a peer will need of a cell, as it said; 0 for one that has not been heard of: it counts
// as idle.
func (v *view) expects(d *dealing, cell, now int64) int64 {
	h, at := d.together(now)
	if at == 0 {
		return 0
	}
	return v.frame.PeerNeeds(h.Total, h.Rate, cell == h.Cell)
}

// spareOf returns what a peer may have to lend of a cell: by its last answer or its hint, whichever is newer; one
// that has said nothing is taken to be idle.
func (v *view) spareOf(d *dealing, cell, now int64) int64 {
	pos := d.at(cell)
	h, heardAt := d.together(now)
	if now < pos.refusedUntil && heardAt <= pos.spareAt {
		return 0
	}
	answered := pos.spareAt > 0 && pos.spareAt >= heardAt && now-pos.spareAt <= answerLife
	if answered && (pos.spare > 0 || now < pos.refusedUntil) { // a refusal is old news once its time is over
		return pos.spare
	}
	left := d.part.Lendable
	switch {
	case heardAt == 0:
	case cell == h.Cell:
		left = h.Spare
	default:
		left = d.part.Entitlement - v.expects(d, cell, now) - pos.row.Borrowed
	}
	return allocator.Spare(left, d.part.Lendable, pos.row.Borrowed)
}

// spareBurstOf returns what burst a peer may have to lend: by its hint, or all of it.
func (v *view) spareBurstOf(d *dealing, cell, now int64) int64 {
	left := d.part.LendableBurst
	if h, at := d.together(now); at > 0 {
		left = h.SpareBurst
	}
	return allocator.Spare(left, d.part.LendableBurst, d.at(cell).row.BurstBorrowed)
}
