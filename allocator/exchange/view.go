package exchange

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

const (
	// needLife is how long a region that denied counts as in need, in microseconds. A region in
	// need asks at once for all that it lacks.
	needLife = allocator.Second
	// answerLife is how long a lender's answer about what it has left is believed, in microseconds,
	// unless a newer hint speaks of it.
	answerLife = 2 * Interval
	// idleAfter is how long a bucket that nobody uses or asks about is remembered, in microseconds.
	idleAfter = 10 * allocator.Second
)

// view is what a node knows of one bucket. Times are node time, unless they are store time.
type view struct {
	*Bucket
	self    string
	state   algorithms.State   // as last seen
	stateAt quantity.StoreTime // store time of state
	demand  allocator.Demand
	rate    quantity.MilliRate // by demand, milliunits per second
	sampled quantity.NodeTime  // when demand was last sampled
	asked   allocator.Requests // since the last sample
	// small is the demand that does not come in large costs; nil: none does.
	small     *allocator.Demand
	smallRate quantity.MilliRate // by small
	capped    quantity.MilliRate // what capped classes are admitted on this node, smoothed
	flow      flow               // of Envoys
	wanted    quantity.Units     // units of the current cell that waiting requests lack
	// wantedUntil is when the last request that can be waiting gives up.
	wantedUntil quantity.NodeTime
	wantedGot   bool              // some of the wanted units have come
	deniedAt    quantity.NodeTime // when a request was last denied here; 0: never
	large       large             // that was denied here lately
	served      quantity.NodeTime // when a peer last no longer wanted a large cost; 0: never
	lacks       lacks
	owing       owing
	active      quantity.NodeTime // when it was last used here or asked about
	askedAt     quantity.NodeTime // when a peer last asked or hinted; 0: never
	// this node's demand, smoothed over about a second, milliunits per second
	mean     quantity.MilliRate
	shown    Hint // the last hint published
	shownAt  quantity.NodeTime
	frame    allocator.Frame
	own      allocator.RegionPart
	dealings []dealing // one for each peer, in the machine's order
	mates    *voices   // what the other nodes of this region say; nil: nothing
}

// frameOf returns the bucket's frame: how its kind divides time.
func (b *Bucket) frameOf() allocator.Frame {
	f := allocator.FrameOf(b.Kind, b.Window, b.Cell)
	f.Calendar, f.Assigned = b.Calendar, b.Assigned
	return f
}

// asksOnce reports whether the bucket asks at once for everything that it lacks of a cell, as late as
// possible. It does where each cell stands apart, because the need is then known best. Where use
// fades or rights are rates, rights that come late are lost, so such a bucket asks for half of the
// gap at each tick.
func (v *view) asksOnce() bool { return v.frame.CellsApart }

// keepsAsking reports whether a lender is asked again while its answer is under way. It is where use
// fades, because the lender then has a little more to lend at every moment.
func (v *view) keepsAsking() bool { return v.frame.Sliding }

func (v *view) entitlement() quantity.Units { return v.own.Entitlement }

// observe takes in a state that the store showed at a store time. A state older than the known one
// can only raise the use, and only that of the same fixed window.
func (v *view) observe(s algorithms.State, at quantity.StoreTime) {
	switch {
	case s.Cell < v.state.Cell:
	case at >= v.stateAt:
		v.state, v.stateAt = s, at
	case s.Cell == v.state.Cell && v.frame.CellsApart:
		v.state.Used = max(v.state.Used, s.Used)
		v.state.Free = max(v.state.Share-v.state.Used, 0)
	}
}

// roll moves the state to the given cell, the current one.
func (v *view) roll(cell quantity.Cell) { v.state = v.frame.Roll(v.state, cell, v.entitlement()) }

// isShut reports whether a loss keeps the bucket closed at a store time. Rights borrowed for that time
// would be of no use.
func (v *view) isShut(at quantity.StoreTime) bool { return v.state.Shut > at }

// share returns the rights this region holds of the state's cell or of the next one.
func (v *view) share(cell quantity.Cell) quantity.Units {
	if cell == v.state.Cell {
		return v.state.Share
	}
	return v.state.NextShare
}

// there returns how many units this region has left of the state's cell, or has of the next one.
func (v *view) there(cell quantity.Cell) quantity.Units {
	if cell == v.state.Cell {
		return v.state.Free
	}
	return v.share(cell)
}

// outlook returns what this region expects of the current or the next cell, and the microseconds
// until that cell opens. at is a store time, rate a demand in milliunits per second.
func (v *view) outlook(cell quantity.Cell, at quantity.StoreTime,
	rate quantity.MilliRate) (o allocator.Outlook, opens int64) {
	o, opens = v.frame.Outlook(v.planned(), cell, at, rate)
	if v.Capped > 0 && v.frame.CellsApart {
		o.Capped, o.Room = v.capped+v.mates.capped(), v.room(v.share(cell))-o.Used
	}
	return o, opens
}

// room returns how many units of a share capped classes may use.
func (v *view) room(share quantity.Units) quantity.Units { return algorithms.Portion(share, v.Capped) }

// inNeed reports whether requests were denied here within needLife.
func (v *view) inNeed(now quantity.NodeTime) bool {
	return v.deniedAt > 0 && now.Sub(v.deniedAt) <= needLife
}

// wants returns how many units this region asks for at once in home mode.
func (v *view) wants(now quantity.NodeTime) quantity.Units {
	return allocator.HomeWants(v.wanted, v.inNeed(now))
}

// sample adds to demand what callers asked for since the last sample.
func (v *view) sample(now quantity.NodeTime) {
	elapsed := now.Sub(v.sampled)
	if v.frame.LendsBurst && v.small == nil && v.asked.LargeAdmitted+v.asked.LargeDenied > 0 {
		v.small = new(v.demand)
	}
	v.demand.Sample(v.asked, elapsed)
	v.rate = v.demand.Rate(v.Cell)
	v.capped = allocator.SmoothedCapped(v.capped, v.asked.Capped, elapsed)
	if v.small != nil {
		v.small.Sample(v.asked.Small(), elapsed)
		v.smallRate = v.small.Rate(v.Cell)
	}
}

// rateNow returns this node's demand in milliunits per second, including what came since the last
// sample.
func (v *view) rateNow(now quantity.NodeTime) quantity.MilliRate {
	return v.demand.Latest(v.rate, v.asked, now.Sub(v.sampled))
}

// burstRate returns this node's demand for which tokens are to be borrowed ahead: what comes in large
// costs is not, for their tokens are borrowed while a request waits.
func (v *view) burstRate(now quantity.NodeTime) quantity.MilliRate {
	if v.small == nil {
		return v.demand.Latest(v.rate, v.asked.Small(), now.Sub(v.sampled))
	}
	return v.small.Latest(v.smallRate, v.asked.Small(), now.Sub(v.sampled))
}

// expects returns the most units that a peer will need of a cell, by its hints. A peer that has
// sent none counts as idle: 0.
func (v *view) expects(d *dealing, cell quantity.Cell, now quantity.NodeTime) quantity.Units {
	h, at := d.together(now)
	if at == 0 {
		return 0
	}
	return v.frame.PeerNeeds(h.Total, h.Rate, h.Capped, v.room(d.part.Entitlement), cell == h.Cell)
}

// spareOf returns how many units of a cell a peer may have to lend, by its last answer or its
// hints, whichever is newer. A peer that has said nothing counts as idle.
func (v *view) spareOf(d *dealing, cell quantity.Cell, now quantity.NodeTime) quantity.Units {
	pos := d.at(cell)
	h, heardAt := d.together(now)
	if now < pos.refusedUntil && heardAt <= pos.spareAt {
		return 0
	}
	answered := pos.spareAt > 0 && pos.spareAt >= heardAt && now.Sub(pos.spareAt) <= answerLife
	// An answer without spare units no longer counts once the time of the refusal is over.
	if answered && (pos.spare > 0 || now < pos.refusedUntil) {
		return pos.spare
	}
	left := d.part.Lendable
	switch {
	case heardAt == 0:
	case cell == h.Cell:
		left = h.Spare
	default:
		left = d.part.Entitlement - v.expects(d, cell, now) - pos.lends()
	}
	return allocator.Spare(left, d.part.Lendable, pos.lends())
}

// spareBurstOf returns how many tokens a peer may have to lend: by its hints, or all that it may
// lend if it has sent none.
func (v *view) spareBurstOf(d *dealing, cell quantity.Cell, now quantity.NodeTime) quantity.Units {
	left := d.part.LendableBurst
	if h, at := d.together(now); at > 0 {
		left = h.SpareBurst
	}
	return allocator.Spare(left, d.part.LendableBurst, d.at(cell).row.BurstBorrowed)
}
