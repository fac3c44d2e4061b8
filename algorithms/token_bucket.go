package algorithms

// tokens is token_bucket: a bucket that holds C tokens and is refilled with S[k] tokens a window.
// It admits when it holds as many tokens as the cost. The level is settled cell by cell, each with
// that cell's own share and capacity.
//
// Rights are a rate. The lender's rate falls when it lends. The borrower's rises when it hears of
// the loan, and never catches up on time already gone. Burst rights move capacity and the tokens in
// it for the rest of a cell. At the cell's end the level is clipped to what the region's own bucket
// holds.
type tokens struct {
	rate
	unrestored
	level int64 // numerator over ticks
	at    int64 // tick from which refill is not yet in the level: now, or the next tick
	mark  int64 // tick at which a full bucket last lost refill
	since bool  // the level follows from a stored one
	dirty bool
}

func openTokens(h held) limiter {
	t := &tokens{rate: newRate(h)}
	closed := h.closed() / h.Tick
	t.level, t.at, t.mark, t.since = t.written(floorDiv)
	switch {
	case t.since:
	// The level before the loss is not known: the bucket begins empty.
	case closed > 0:
		t.level, t.at, t.mark = 0, closed, closed
	default:
		t.at = t.tick
		t.fill(t.capacity(h.cell) * t.ticks)
	}
	if t.at < t.tick {
		t.refill(t.at)
	}
	full := t.capacity(h.cell) * t.ticks
	t.clip(full)
	if t.level == full {
		t.at = max(t.at, t.begun()) // it was full until now
	}
	return t
}

// capacity returns how many tokens the bucket holds in a cell.
func (t *tokens) capacity(cell int64) int64 {
	c := t.Burst
	for _, row := range t.rows[cell] {
		c += row.BurstBorrowed - row.BurstLent
	}
	return c
}

// refill brings the level from tick at up to the current tick.
func (t *tokens) refill(at int64) {
	t.at = t.tick
	t.walk(at, func(cell, from, to, share int64) bool {
		end := t.tick
		if to >= 0 {
			end = min(to, t.tick)
		}
		t.rise(cell, share, from, end)
		return end == t.tick
	})
}

// rise refills at a share from one tick to another of a cell, at most to the cell's capacity.
func (t *tokens) rise(cell, share, from, end int64) {
	full, ticks := t.capacity(cell)*t.ticks, end-from
	// The bucket is full after lack ticks. A longer span could make the product inexact.
	if lack := ceilDiv(max(full-t.level, 0), max(share, 1)); share > 0 && ticks > lack {
		ticks = lack + 1
	}
	if t.level += share * ticks; t.level > full {
		t.level, t.mark = full, end
	}
}

func (t *tokens) clip(full int64) {
	if t.level > full {
		t.fill(full)
	}
}

// fill makes the bucket full. Refill counts from now on: from the next tick if this one has begun.
func (t *tokens) fill(full int64) { t.level, t.at, t.mark = full, t.begun(), t.tick }

func (t *tokens) state() State {
	free := t.free()
	return State{Cell: t.cell, Entitlement: t.Entitlement, Share: t.share(t.cell), NextShare: t.share(t.cell + 1),
		Used: t.capacity(t.cell) - free, Free: max(free, 0)}
}

// free returns the whole tokens in the bucket; it may be negative after book.
func (t *tokens) free() int64 { return floorDiv(t.level, t.ticks) }

func (t *tokens) fits(cost int64) bool { return t.open(t.cell) && cost <= t.free() }

// retry follows the level into the future until it is as high as the cost.
func (t *tokens) retry(cost int64) int64 {
	level, found := t.level, int64(-1)
	t.walk(max(t.at, t.tick), func(cell, from, to, share int64) bool {
		full := t.capacity(cell)
		level = min(level, full*t.ticks)
		if cost <= full && t.open(cell) {
			lack := max(cost*t.ticks-level, 0)
			when := from + ceilDiv(lack, max(share, 1))
			if (lack == 0 || share > 0) && (to < 0 || when < to) {
				found = when
				return true
			}
		}
		level = min(level+share*(to-from), full*t.ticks)
		return false
	})
	if found < 0 {
		return -1
	}
	return t.until(found)
}

func (t *tokens) take(cost int64) int64 {
	t.level -= cost * t.ticks
	t.dirty = true
	return 0
}

func (t *tokens) spare(kept int64) int64 { return t.share(t.cell) - kept }

func (t *tokens) room(cell int64, _ string, kept int64) int64 { return t.share(cell) - kept }

func (t *tokens) roomBurst(kept int64) int64 {
	if !t.open(t.cell) {
		return 0
	}
	return t.free() - kept
}

func (t *tokens) settle(tokens int64) {
	t.level += tokens * t.ticks
	t.dirty = true
}

func (t *tokens) refund(at, _, units int64) (int64, Refusal) {
	if !t.since || at/t.Tick < t.mark || !t.refundable(at) {
		return 0, NoLongerWeighs
	}
	before := t.free()
	t.level += units * t.ticks
	t.clip(t.capacity(t.cell) * t.ticks)
	t.dirty = true
	return min(units, t.free()-before), NotRefused
}

func (t *tokens) book(_, units int64) bool {
	t.take(units)
	return true
}

func (t *tokens) reset() {
	t.fill(t.capacity(t.cell) * t.ticks)
	t.dirty = true
}

func (t *tokens) save() {
	if !t.dirty {
		return
	}
	t.write(t.level, t.at, t.mark)
}
