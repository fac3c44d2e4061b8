package algorithms

import "github.com/quotad/quotad/quantity"

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
	level quantity.Units // numerator over ticks
	at    int64          // tick from which refill is not yet in the level: now, or the next tick
	mark  int64          // tick at which a full bucket last lost refill
	since bool           // the level follows from a stored one
	dirty bool
}

func openTokens(h held) limiter {
	t := &tokens{rate: newRate(h)}
	closed := int64(h.closed()) / h.Tick
	t.level, t.at, t.mark, t.since = t.written(floorDiv)
	switch {
	case t.since:
	// The level before the loss is not known: the bucket begins empty.
	case closed > 0:
		t.level, t.at, t.mark = 0, closed, closed
	default:
		t.at = t.tick
		t.fill(t.capacity(h.cell) * quantity.Units(t.ticks))
	}
	full := t.capacity(h.cell) * quantity.Units(t.ticks)
	if t.since {
		t.dirty = t.catchUp(t.refill) && t.level < full
	} else {
		t.refill()
	}
	t.clip(full)
	if t.level == full {
		t.at = max(t.at, t.begun()) // it was full until now
	}
	return t
}

// capacity returns how many tokens the bucket holds in a cell.
func (t *tokens) capacity(cell quantity.Cell) quantity.Units {
	c := t.Burst
	for _, row := range t.rows[cell] {
		c += row.BurstBorrowed - row.BurstLent
	}
	return c
}

// refill brings the level from the tick that it is of up to the current one.
func (t *tokens) refill() {
	if t.at >= t.tick {
		return
	}
	at := t.at
	t.at = t.tick
	t.walk(at, func(cell quantity.Cell, from, to int64, share quantity.Units) bool {
		end := t.tick
		if to >= 0 {
			end = min(to, t.tick)
		}
		t.rise(cell, share, from, end)
		return end == t.tick
	})
}

// rise refills at a share from one tick to another of a cell, at most to the cell's capacity.
func (t *tokens) rise(cell quantity.Cell, share quantity.Units, from, end int64) {
	full, ticks := t.capacity(cell)*quantity.Units(t.ticks), end-from
	// The bucket is full after lack ticks. A longer span could make the product inexact.
	if lack := ceilDiv(int64(max(full-t.level, 0)), int64(max(share, 1))); share > 0 &&
		ticks > lack {
		ticks = lack + 1
	}
	if t.level += share * quantity.Units(ticks); t.level > full {
		t.level, t.mark = full, end
	}
}

func (t *tokens) clip(full quantity.Units) {
	if t.level > full {
		t.fill(full)
	}
}

// fill makes the bucket full. Refill counts from now on: from the next tick if this one has begun.
func (t *tokens) fill(full quantity.Units) { t.level, t.at, t.mark = full, t.begun(), t.tick }

func (t *tokens) state() State {
	free := t.free()
	return State{Cell: t.cell, Entitlement: t.Entitlement, Share: t.whole(t.cell),
		NextShare: t.whole(t.cell + 1), Reset: t.resetAfter(),
		Used: t.capacity(t.cell) - free, Free: max(free, 0)}
}

// whole returns the rights that the region has of a cell, those that are assigned with them.
func (t *tokens) whole(cell quantity.Cell) quantity.Units {
	if !t.open(cell) {
		return 0
	}
	return max(t.rights(cell)+t.assigned(cell), 0)
}

// resetAfter follows the level into the future until the bucket is full. Full means what the bucket
// holds in the cell of that moment.
func (t *tokens) resetAfter() int64 {
	level, found := t.level, int64(-1)
	if level >= t.capacity(t.cell)*quantity.Units(t.ticks) {
		return 0
	}
	t.walk(max(t.at, t.tick), func(cell quantity.Cell, from, to int64, share quantity.Units) bool {
		full := t.capacity(cell) * quantity.Units(t.ticks)
		if level >= full {
			found = from
			return true
		}
		if share > 0 {
			when := from + ceilDiv(int64(full-level), int64(share))
			if to < 0 || when < to {
				found = when
				return true
			}
		}
		level = min(level+share*quantity.Units(to-from), full)
		return false
	})
	if found < 0 {
		return t.forgotten()
	}
	return t.until(found)
}

// free returns the whole tokens in the bucket; it may be negative after book.
func (t *tokens) free() quantity.Units { return floorDiv(t.level, t.ticks) }

// withheld returns how many tokens a request of a part may not use in a cell.
func (t *tokens) withheld(cell quantity.Cell, part quantity.PPM) quantity.Units {
	return t.capacity(cell) - Portion(t.capacity(cell), part)
}

func (t *tokens) fits(cost quantity.Units, part quantity.PPM) bool {
	return t.open(t.cell) && cost+t.withheld(t.cell, part) <= t.free()
}

// retry follows the level into the future until it is as high as the cost.
func (t *tokens) retry(cost quantity.Units, part quantity.PPM) int64 {
	level, found := t.level, int64(-1)
	t.walk(max(t.at, t.tick), func(cell quantity.Cell, from, to int64, share quantity.Units) bool {
		full := t.capacity(cell)
		level = min(level, full*quantity.Units(t.ticks))
		if least := cost + t.withheld(cell, part); least <= full && t.open(cell) {
			lack := max(least*quantity.Units(t.ticks)-level, 0)
			when := from + ceilDiv(int64(lack), int64(max(share, 1)))
			if (lack == 0 || share > 0) && (to < 0 || when < to) {
				found = when
				return true
			}
		}
		level = min(level+share*quantity.Units(to-from), full*quantity.Units(t.ticks))
		return false
	})
	if found < 0 {
		return -1
	}
	return t.until(found)
}

func (t *tokens) take(cost quantity.Units) int64 {
	t.level -= cost * quantity.Units(t.ticks)
	t.dirty = true
	return 0
}

func (t *tokens) charge(cost, mostOwed quantity.Units) {
	most := min(mostOwed, quantity.Units(MaxUnits/t.ticks))
	t.take(min(cost, max(t.free()+most, 0)))
}

// owes reports whether the level is below zero. Then the rate is needed here: it is not lent.
func (t *tokens) owes() bool { return t.level < 0 }

func (t *tokens) spare(kept quantity.Units) quantity.Units {
	if t.owes() {
		return 0
	}
	return t.share(t.cell) - kept
}

func (t *tokens) room(cell quantity.Cell, _ string, kept quantity.Units) quantity.Units {
	if t.owes() {
		return 0
	}
	return t.share(cell) - kept
}

func (t *tokens) roomBurst(kept quantity.Units) quantity.Units {
	if !t.open(t.cell) {
		return 0
	}
	return t.free() - kept
}

func (t *tokens) settle(tokens quantity.Units) {
	t.level += tokens * quantity.Units(t.ticks)
	t.dirty = true
}

func (t *tokens) refund(at quantity.StoreTime, _ quantity.Cell,
	units quantity.Units) (quantity.Units, Refusal) {
	if !t.since || int64(at)/t.Tick < t.mark || !t.refundable(at) {
		return 0, NoLongerWeighs
	}
	return t.refundNewest(units)
}

// refundNewest puts tokens back, as many as there is room for.
func (t *tokens) refundNewest(units quantity.Units) (quantity.Units, Refusal) {
	units = min(units, t.capacity(t.cell)) // more could not be counted in ticks
	before := t.free()
	t.level += units * quantity.Units(t.ticks)
	t.clip(t.capacity(t.cell) * quantity.Units(t.ticks))
	t.dirty = true
	return min(units, t.free()-before), NotRefused
}

func (t *tokens) book(_ quantity.Cell, units quantity.Units) bool {
	t.charge(units, MaxUnits)
	return true
}

func (t *tokens) reset() {
	t.fill(t.capacity(t.cell) * quantity.Units(t.ticks))
	t.dirty = true
}

func (t *tokens) save() {
	if !t.dirty {
		return
	}
	t.write(t.level, t.at, t.mark)
	if t.owes() && t.Entitlement > 0 {
		t.bucket.expires = max(t.bucket.expires, t.now.Add(t.resetAfter()))
	}
}
