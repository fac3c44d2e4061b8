package algorithms

// rate is what token_bucket and leaky_bucket share: rights that are a rate, S[k] units a window in cell k, and time in
// ticks. Work is units times the ticks of a window, so that a tick at S does exactly S, and no remainder is ever lost.
type rate struct {
	held
	ticks int64 // in a window
	cells int64 // ticks in a cell
	tick  int64 // now, rounded down
	last  int64 // the last cell whose rights may not be the entitlement
}

func newRate(h held) rate {
	r := rate{held: h, ticks: h.Terms.ticks(), cells: h.Cell / h.Tick, tick: h.now / h.Tick, last: h.lastRow()}
	if h.lostAt > 0 {
		r.last = max(r.last, CellAt(h.lostAt, h.Cell)+1)
	}
	return r
}

// written returns level, tick and mark as they were last written; ok is false if that says nothing. Another limit may
// have changed the length of a tick: each is then converted, and rounded against the caller.
func (r *rate) written(round func(a, b int64) int64) (level, at, mark int64, ok bool) {
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
		level, at, mark = min(level, MaxUnits/finer)*finer, at*finer, mark*finer
	}
	return level, at, mark, at*r.Tick >= r.lostAt
}

// write keeps level, tick and mark.
func (r *rate) write(level, at, mark int64) {
	b := r.bucket
	b.stored = true
	b.level, b.at, b.mark, b.tick, b.known = level, at, mark, r.Tick, true
	if b.written != r.held.cell {
		r.keep()
		b.written = r.held.cell
	}
}

// share returns S of a cell.
func (r *rate) share(cell int64) int64 { return max(r.rights(cell), 0) }

// walk goes through the cells from tick from on until do says stop, giving it each stretch of one rate; the last, with
// to < 0, has no end.
func (r *rate) walk(from int64, do func(cell, from, to, share int64) (stop bool)) {
	for {
		cell := from / r.cells
		to := (cell + 1) * r.cells
		if cell > r.last {
			to = -1
		}
		if do(cell, from, to, r.share(cell)) || to < 0 {
			return
		}
		from = to
	}
}

// after returns the tick at which the work is done that begins at tick from, or -1 if it never is.
func (r *rate) after(from, work int64) int64 {
	done := int64(-1)
	r.walk(from, func(_, from, to, share int64) bool {
		switch {
		case work == 0:
			done = from
		case share > 0 && (to < 0 || work <= share*(to-from)):
			done = from + ceilDiv(work, share)
		default:
			work -= share * (to - from)
			return false
		}
		return true
	})
	return done
}

// begun returns the tick from which time counts for what begins now: rounded up, against the caller.
func (r *rate) begun() int64 { return ceilDiv(r.now, r.Tick) }

// until returns after how many us a tick begins.
func (r *rate) until(tick int64) int64 { return max(tick*r.Tick-r.now, 0) }

// refundableFor is how long at most a charge of a bucket can be refunded.
const refundableFor = int64(24 * 3600 * second)

// refundable says whether a charge may still be told apart from refill that was lost to a full bucket.
func (r *rate) refundable(at int64) bool { return r.now < at+min(r.fillTime(), refundableFor) }
