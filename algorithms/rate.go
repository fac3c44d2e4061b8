package algorithms

import "github.com/quotad/quotad/quantity"

// rate is the common part of token_bucket and leaky_bucket. Rights are a rate, S[k] units a window
// in cell k. Time is counted in ticks, and work in units times the ticks of a window. So a tick at
// rate S does exactly S of work, and no remainder is ever lost.
type rate struct {
	held
	ticks int64         // in a window
	cells int64         // ticks in a cell
	tick  int64         // now, rounded down
	last  quantity.Cell // the last cell whose rights may differ from the entitlement
}

func newRate(h held) rate {
	r := rate{held: h, ticks: h.Terms.ticks(), cells: h.Cell / h.Tick, tick: int64(h.now) / h.Tick,
		last: h.lastRow()}
	if h.lostAt > 0 {
		r.last = max(r.last, CellAt(h.lostAt, h.Cell)+1)
	}
	return r
}

// written returns level, tick and mark as they were last written; ok is false if nothing useful was
// written. A new limit may have changed the length of a tick. Then written converts all three,
// rounding against the caller.
func (r *rate) written(round func(a quantity.Units, b int64) quantity.Units) (level quantity.Units,
	at, mark int64, ok bool) {
	b := r.bucket
	level, at, mark = b.level, b.at, b.mark
	switch {
	case !b.known:
		return 0, 0, 0, false
	case b.tick < r.Tick:
		coarser := r.Tick / b.tick
		level, at, mark = round(level, coarser), ceilDiv(at, coarser), ceilDiv(mark, coarser)
	case b.tick > r.Tick:
		finer := b.tick / r.Tick
		most := quantity.Units(MaxUnits / finer)
		level, at, mark = max(min(level, most), -most)*quantity.Units(finer), at*finer, mark*finer
	}
	return level, at, mark, quantity.StoreTime(at*r.Tick) >= r.lostAt
}

// write stores level, tick and mark.
func (r *rate) write(level quantity.Units, at, mark int64) {
	b := r.bucket
	b.stored = true
	b.level, b.at, b.mark, b.tick, b.known, b.entitled = level, at, mark, r.Tick, true, r.Entitlement
	r.keep()
}

// catchUp brings a level that was read up to now with up. What has passed since it was written counts
// at the lower of the entitlements of then and now. It returns whether they differ: then a level that
// still changes is to be written, so that what comes counts at the entitlement of now.
func (r *rate) catchUp(up func()) (differ bool) {
	now := r.Entitlement
	r.Entitlement = min(now, r.bucket.entitled)
	up()
	r.Entitlement = now
	return r.bucket.entitled != now
}

// share returns S of a cell.
func (r *rate) share(cell quantity.Cell) quantity.Units { return max(r.rights(cell), 0) }

// walk calls do for each stretch of time with one rate, from tick from on, until do returns true.
// The last stretch has no end: its to is negative.
func (r *rate) walk(from int64, do func(cell quantity.Cell, from, to int64,
	share quantity.Units) (stop bool)) {
	for {
		cell := quantity.Cell(from / r.cells)
		to := int64(cell+1) * r.cells
		if cell > r.last {
			to = -1
		}
		if do(cell, from, to, r.share(cell)) || to < 0 {
			return
		}
		from = to
	}
}

// after returns the tick at which work that begins at tick from is done, or -1 if it never is.
func (r *rate) after(from int64, work quantity.Units) int64 {
	done := int64(-1)
	r.walk(from, func(_ quantity.Cell, from, to int64, share quantity.Units) bool {
		switch {
		case work == 0:
			done = from
		case share > 0 && (to < 0 || work <= share*quantity.Units(to-from)):
			done = from + ceilDiv(int64(work), int64(share))
		default:
			work -= share * quantity.Units(to-from)
			return false
		}
		return true
	})
	return done
}

// begun returns the tick from which time counts for something that begins now. It rounds up,
// against the caller.
func (r *rate) begun() int64 { return int64(ceilDiv(r.now, r.Tick)) }

// until returns how many us from now a tick begins, at least 0.
func (r *rate) until(tick int64) int64 { return max(tick*r.Tick-int64(r.now), 0) }

// forgotten returns after how many us the store has forgotten the bucket, and what was booked of
// this window, at the latest. A bucket without a rate, whose entitlement became 0, becomes whole
// only by that.
func (r *rate) forgotten() int64 {
	booked := (CellAt(r.now, r.Window) + 2).OpensAt(r.Window).Add(r.ClockMargin)
	return max(r.Useful(r.held.cell), r.expires, booked).Add(KeySlack + millisecond).Sub(r.now)
}

// millisecond is the unit in which Redis ends keys; bucket.lua rounds up to it.
const millisecond = second / 1000

// refundableFor is the longest time, in microseconds, for which a bucket's charge can be refunded.
const refundableFor = 24 * 3600 * second

// refundable reports whether a charge made at store time at can still be told apart from refill that a
// full bucket lost.
func (r *rate) refundable(at quantity.StoreTime) bool {
	return r.now < at.Add(min(r.FillTime(), refundableFor))
}
