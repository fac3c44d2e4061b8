package algorithms

import "github.com/quotad/quotad/quantity"

// counter is sliding_window_counter: it admits when used[k] + used[k-1] (1-f) + cost <= S[k], where
// f is the elapsed fraction of the cell. Amounts are numerators over the ticks of a window.
//
// Use admitted on lent rights still weighs at the borrower after its cell. Rights promised for the
// next cell will weigh there from its start. So each peer reduces S by the largest of these
// amounts, not by the loan N[k] alone:
//
//	N[k]    R[k+1]    N[c] (1 - (time since the end of c - guard) / W) for earlier cells c
type counter struct {
	burstless
	held
	ticks        int64 // in a window
	elapsed      int64 // of the cell, rounded down
	used, before quantity.Units
	// hidden is the part of used, and hiddenBefore the part of before, that no node has reported;
	// see untold.
	hidden, hiddenBefore quantity.Units
	dirty                bool
}

func openCounter(h held) limiter {
	c := &counter{held: h, ticks: h.Terms.ticks(), elapsed: (h.now.Sub(h.cell.OpensAt(h.Cell))) /
		h.Tick}
	switch h.bucket.cell {
	case h.cell:
		c.used, c.before = h.bucket.used, h.bucket.before
	case h.cell - 1:
		c.before = h.bucket.used
	}
	if CellAt(h.whole, h.Cell) == h.cell {
		c.hidden = h.untold()
	} else {
		c.hiddenBefore = h.untold()
	}
	c.used, c.before = c.used+c.hidden, c.before+c.hiddenBefore
	return c
}

// weight returns how much of each unit lent in a cell is missing in cell k after e ticks, as a
// numerator over the ticks of a window.
func (c *counter) weight(lent, k quantity.Cell, e int64) int64 {
	if lent >= k {
		return c.ticks
	}
	since := floorDiv(int64((k-1-lent).OpensAt(c.Cell))+e*c.Tick-c.ClockMargin, c.Tick)
	return min(max(c.ticks-since, 0), c.ticks)
}

// missing returns what a peer's loans take from S in cell k after e ticks, as a numerator over the
// ticks of a window. It leaves out the rows of cell without.
func (c *counter) missing(peer string, k quantity.Cell, e int64,
	without quantity.Cell) quantity.Units {
	var most quantity.Units
	for cell, rows := range c.rows {
		if cell != without && cell <= k+1 {
			most = max(most, rows[peer].out()*quantity.Units(c.weight(cell, k, e)))
		}
	}
	return most
}

// rights returns S in cell k after e ticks, as a numerator over the ticks of a window.
func (c *counter) rights(k quantity.Cell, e int64) quantity.Units {
	if k.OpensAt(c.Cell).Add(e*c.Tick) < c.closed() {
		return 0
	}
	s := (c.Entitlement + c.in(k)) * quantity.Units(c.ticks)
	for peer := range c.peers() {
		s -= c.missing(peer, k, e, -1)
	}
	return s
}

// estimate returns what counts as used in cell k after e ticks if nothing more is admitted, as a
// numerator over the ticks of a window.
func (c *counter) estimate(k quantity.Cell, e int64) quantity.Units {
	switch k {
	case c.cell:
		return c.used*quantity.Units(c.ticks) + c.before*quantity.Units(c.ticks-e)
	case c.cell + 1:
		return c.used * quantity.Units(c.ticks-e)
	}
	return 0
}

// free returns the units that fit in cell k after e ticks if nothing more is admitted until then,
// into a part of the rights.
func (c *counter) free(k quantity.Cell, e int64, part quantity.PPM) quantity.Units {
	rights := c.rights(k, e)
	if part < Whole {
		rights = Portion(floorDiv(rights, c.ticks), part) * quantity.Units(c.ticks)
	}
	return floorDiv(rights-c.estimate(k, e), c.ticks)
}

func (c *counter) state() State {
	return State{Cell: c.cell, Entitlement: c.Entitlement,
		Share:     floorDiv(c.rights(c.cell, c.elapsed), c.ticks),
		NextShare: floorDiv(c.rights(c.cell+1, 0), c.ticks), Reset: c.resetAfter(),
		Used:   ceilDiv(c.estimate(c.cell, c.elapsed), c.ticks),
		Fading: c.before * quantity.Units(c.ticks-c.elapsed) / quantity.Units(c.ticks),
		Free:   max(c.free(c.cell, c.elapsed, Whole), 0)}
}

// resetAfter returns when the cell after the last one with use ends: use counts until then.
func (c *counter) resetAfter() int64 {
	switch {
	case c.used > 0:
		return (c.cell + 2).OpensAt(c.Cell).Sub(c.now)
	case c.before > 0:
		return (c.cell + 1).OpensAt(c.Cell).Sub(c.now)
	}
	return 0
}

func (c *counter) fits(cost quantity.Units, part quantity.PPM) bool {
	return cost <= c.free(c.cell, c.elapsed, part)
}

// retry looks for the first tick at which the cost fits. Within a cell only time passes, so the
// room only grows and a binary search finds the tick.
func (c *counter) retry(cost quantity.Units, part quantity.PPM) int64 {
	last := (c.Window - 1) / c.Tick
	settled := max(c.Weighs(c.lastRow()), c.closed())
	for k, from := c.cell, c.elapsed; ; k, from = k+1, 0 {
		if cost <= c.free(k, last, part) {
			lo, hi := from, last
			for lo < hi {
				mid := (lo + hi) / 2
				if cost <= c.free(k, mid, part) {
					hi = mid
				} else {
					lo = mid + 1
				}
			}
			return k.OpensAt(c.Cell).Add(lo * c.Tick).Sub(c.now)
		}
		if k > c.cell+1 && k.OpensAt(c.Cell) >= settled {
			return -1
		}
	}
}

func (c *counter) take(cost quantity.Units) int64 {
	c.used += cost
	c.dirty = true
	return 0
}

// charge counts as much as can be counted in ticks.
func (c *counter) charge(cost, _ quantity.Units) {
	c.take(min(cost, max(quantity.Units(MaxUnits/c.ticks)-c.used, 0)))
}

// slack returns S less the estimate and less kept units, now, as a numerator over the ticks of a
// window.
func (c *counter) slack(kept quantity.Units) quantity.Units {
	kept = min(kept, c.Entitlement+c.in(c.cell))
	return c.rights(c.cell, c.elapsed) - c.estimate(c.cell, c.elapsed) -
		kept*quantity.Units(c.ticks)
}

func (c *counter) spare(kept quantity.Units) quantity.Units {
	return floorDiv(c.slack(kept), c.ticks)
}

// room: units that are missing because of the peer anyhow cost nothing to lend. Rights of the next
// cell must be free in this cell too; kept then means units of the next cell.
func (c *counter) room(cell quantity.Cell, peer string, kept quantity.Units) quantity.Units {
	if c.slack(0) < 0 {
		return 0
	}
	lent := c.rows[cell][peer].out()
	more := func(k quantity.Cell, e int64, slack quantity.Units) quantity.Units {
		return floorDiv(max(lent*quantity.Units(c.ticks), c.missing(peer, k, e, cell))+slack,
			c.ticks) - lent
	}
	if cell == c.cell {
		return more(cell, c.elapsed, c.slack(kept))
	}
	kept = min(kept, c.Entitlement+c.in(cell))
	return min(more(c.cell, c.elapsed, c.slack(0)),
		more(cell, 0, c.rights(cell, 0)-kept*quantity.Units(c.ticks)))
}

func (c *counter) refund(_ quantity.StoreTime, cell quantity.Cell,
	units quantity.Units) (quantity.Units, Refusal) {
	from, hidden := &c.used, c.hidden
	switch cell {
	case c.cell:
	case c.cell - 1:
		from, hidden = &c.before, c.hiddenBefore
	default:
		return 0, NoLongerWeighs
	}
	units = min(units, *from-hidden)
	*from -= units
	c.dirty = true
	return units, NotRefused
}

func (c *counter) book(cell quantity.Cell, units quantity.Units) bool {
	switch cell {
	case c.cell:
		c.used += units
	case c.cell - 1:
		c.before += units
	}
	c.dirty = true
	return cell <= c.cell
}

// restore counts the units as used in the cell in which they were seen. So they fade later than
// they did, never sooner.
func (c *counter) restore(u Use) {
	switch u.Cell {
	case c.cell:
		c.used = max(c.used, u.Units)
	case c.cell - 1:
		c.before = max(c.before, u.Units)
	}
	c.dirty = true
}

func (c *counter) known() quantity.Units {
	if CellAt(c.whole, c.Cell) == c.cell {
		return c.used - c.hidden
	}
	return c.before - c.hiddenBefore
}

func (c *counter) reset() {
	c.used, c.before, c.hidden, c.hiddenBefore, c.dirty = 0, 0, 0, 0, true
}

func (c *counter) save() {
	if !c.dirty {
		return
	}
	c.stored = true
	if c.bucket.cell != c.cell {
		c.keep()
	}
	c.bucket.cell, c.bucket.used, c.bucket.before = c.cell, c.used-c.hidden, c.before-c.hiddenBefore
}
