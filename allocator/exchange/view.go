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
	own         part
	dealings    []dealing // of each peer, in the machine's order
	mates       *voices   // what the other nodes of this region say; nil: nothing
}

// again is the time after which asking again may help where use fades or a bucket fills.
func (b *Bucket) again() int64 { return min(max(b.Window/50, Interval/10), Interval) }

// slowly is the time between asks where use fades, of a lender with no more to spare after again than now.
func (b *Bucket) slowly() int64 { return max(min(b.Window/10, longestRetry), b.again()) }

func (v *view) entitlement() int64 { return v.own.entitlement }

// observe takes a state of the store, as of a store time. Of an older one than is known only the use of the same fixed
// window tells something.
func (v *view) observe(s algorithms.State, at int64) {
	switch {
	case s.Cell < v.state.Cell:
	case at >= v.stateAt:
		v.state, v.stateAt = s, at
	case s.Cell == v.state.Cell && v.Kind == algorithms.FixedWindow:
		v.state.Used = max(v.state.Used, s.Used)
		v.state.Free = max(v.state.Share-v.state.Used, 0)
	}
}

// roll moves the state to the given current cell: what counted in the cell before has faded as it was to, and a bucket's
// level is as it was.
func (v *view) roll(cell int64) {
	old := v.state
	if cell <= old.Cell {
		return
	}
	s := algorithms.State{Cell: cell, Entitlement: v.entitlement(), Share: v.entitlement(), NextShare: v.entitlement(), Shut: old.Shut}
	if cell == old.Cell+1 {
		s.Share = old.NextShare
	}
	switch {
	case v.Kind.Bucket():
		s.Used, s.Free = old.Used, old.Free
	case v.Kind.Sliding() && cell == old.Cell+1:
		s.Used = old.Used - old.Fading
		s.Fading = v.fades(s.Used)
	}
	if !v.Kind.Bucket() {
		s.Free = max(s.Share-s.Used, 0)
	}
	v.state = s
}

// shut says whether a loss keeps the bucket closed at a store time: what is borrowed for then is of no use.
func (v *view) shut(at int64) bool { return v.state.Shut > at }

// fades returns how much of what counts when a cell opens will not when it ends.
func (v *view) fades(used int64) int64 {
	switch v.Kind {
	case algorithms.SlidingWindowCounter:
		return used
	case algorithms.SlidingWindowLog:
		return min(allocator.Part(used, v.Cell*allocator.PPM/v.Window), used)
	}
	return 0
}

// share returns the rights held of the state's cell or the one after.
func (v *view) share(cell int64) int64 {
	if cell == v.state.Cell {
		return v.state.Share
	}
	return v.state.NextShare
}

// outlook returns what this region expects of the current cell or the next, at store time s, at a demand rate.
func (v *view) outlook(cell, s, rate int64) (o allocator.Outlook, opens int64) {
	now := algorithms.CellAt(s, v.Cell)
	if v.Kind.Bucket() {
		return allocator.Outlook{Rate: rate, Ahead: v.Window, Steady: true, Stock: v.state.Free}, max(cell*v.Cell-s, 0)
	}
	o = allocator.Outlook{Used: v.state.Used, Fading: v.state.Fading, Rate: rate, Ahead: (now+1)*v.Cell - s}
	if cell <= now {
		return o, 0
	}
	next := allocator.Outlook{Rate: rate, Ahead: v.Cell}
	if v.Kind.Sliding() {
		next.Used = max(min(o.Used-o.Fading+allocator.Over(rate, o.Ahead), max(o.Used, v.state.Share)), 0)
		next.Fading = v.fades(next.Used)
	}
	return next, cell*v.Cell - s
}

// inNeed says whether requests were denied here lately.
func (v *view) inNeed(now int64) bool { return v.deniedAt > 0 && now-v.deniedAt <= needLife }

// wants returns what is asked for at once in home mode: what waiting requests lack, or one unit for the next where one
// was denied lately.
func (v *view) wants(now int64) int64 {
	if v.wanted == 0 && v.inNeed(now) {
		return 1
	}
	return v.wanted
}

// sample takes what was asked since the last sample into the demand.
func (v *view) sample(now int64) {
	v.demand.Sample(v.admitted, v.denied, max(now-v.sampled, Interval/2))
	v.rate = v.demand.Rate(v.Cell)
}

// rateNow returns this node's demand, what came since the last sample included. Half a sample's time must have passed before
// that says anything.
func (v *view) rateNow(now int64) int64 {
	if since := now - v.sampled; since >= Interval/2 {
		return max(v.rate, v.demand.Since(v.admitted, v.denied, since))
	}
	return v.rate
}

// expects returns the most that a peer will need of a cell, as it said; 0 for one that has not been heard of: it counts
// as idle.
func (v *view) expects(d *dealing, cell, now int64) int64 {
	h, at := d.together(now)
	switch {
	case at == 0:
		return 0
	case v.Kind.Bucket():
		return allocator.Over(h.Rate, v.Window)
	case cell == h.Cell || v.Kind.Sliding():
		return h.Total
	}
	return allocator.Over(h.Rate, v.Cell)
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
	limit := d.part.lendable - pos.row.Borrowed
	if heardAt == 0 {
		return max(limit, 0)
	}
	if cell == h.Cell {
		return max(min(limit, h.Spare), 0)
	}
	return max(min(limit, d.part.entitlement-v.expects(d, cell, now)-pos.row.Borrowed), 0)
}

// spareBurstOf returns what burst a peer may have to lend: by its hint, or all of it.
func (v *view) spareBurstOf(d *dealing, cell, now int64) int64 {
	limit := d.part.lendableBurst - d.at(cell).row.BurstBorrowed
	if h, at := d.together(now); at > 0 {
		limit = min(limit, h.SpareBurst)
	}
	return max(limit, 0)
}
