package algorithms

import "github.com/quotad/quotad/quantity"

// Lend answers the lend script at store time t.
func (w *Twin) Lend(t quantity.StoreTime, c Lend) Given {
	head := w.enter(t, c.Fence, c.Terms)
	if head.Status != StatusOK {
		return Given{Head: head}
	}
	now := head.Now
	h := w.find(c.Key, c.Terms, c.ExistsUntil, now)
	// Of a rate, what is assigned serves a part of what is kept; of a window, it is spent.
	if h.Kind == TokenBucket {
		c.Kept -= h.assigned(c.Cell)
	}
	c.Kept, c.KeptBurst = max(c.Kept, 0), max(c.KeptBurst, 0)
	if h.lost() {
		return Given{Head: h.lostHead()}
	}
	l := h.limiter()
	g := Given{Head: head, State: h.show(l)}
	if g.Status = h.current(c.Cell); g.Status != StatusOK {
		return g
	}
	row := h.rows[c.Cell][c.Peer]
	if c.Cell == h.cell {
		if back := min(c.Returned-row.Returned, row.in(), l.spare(c.Kept)); back > 0 {
			row.Returned += back
			l = h.change(l, c.Cell, c.Peer, row, 0)
		}
	}
	out, outBurst := h.out(c.Cell)
	room, roomBurst := min(l.room(c.Cell, c.Peer, c.Kept), c.Cap-out), quantity.Units(0)
	if c.Cell == h.cell {
		roomBurst = min(l.roomBurst(c.KeptBurst), c.CapBurst-outBurst)
	}
	if h.full(c.Cell, c.Peer) {
		room, roomBurst = 0, 0
	}
	more, burst := max(min(c.Lent-row.Lent, room), 0), max(min(c.Burst-row.BurstLent, roomBurst), 0)
	if burst < c.LeastBurst {
		burst = 0
	}
	if more+burst > 0 {
		row.Lent += more
		row.BurstLent += burst
		l = h.change(l, c.Cell, c.Peer, row, -burst)
	}
	g.State, g.Row = h.show(l), row
	g.Spare, g.SpareBurst = max(room-more, 0), max(roomBurst-burst, 0)
	return g
}

// change settles a bucket, stores a row, and opens the bucket again.
func (h held) change(l limiter, cell quantity.Cell, peer string, row Row,
	tokens quantity.Units) limiter {
	l.settle(tokens)
	l.save()
	h.setRow(cell, peer, row)
	h.keep()
	return h.limiter()
}

// Credit answers the credit script at store time t.
func (w *Twin) Credit(t quantity.StoreTime, c Credit) Credited {
	head := w.enter(t, c.Fence, c.Terms)
	if head.Status != StatusOK {
		return Credited{Head: head}
	}
	now := head.Now
	h := w.find(c.Key, c.Terms, c.ExistsUntil, now)
	l := h.limiter()
	g := Credited{Head: head, State: h.show(l)}
	if c.PeerGeneration < w.floors[c.Peer] {
		g.Status = StatusFenced
		return g
	}
	w.raiseFloor(c.Peer, c.PeerGeneration)
	if h.lost() {
		return Credited{Head: h.lostHead()}
	}
	if g.Status = h.current(c.Cell); g.Status != StatusOK {
		return g
	}
	if h.unknown[c.Peer] && h.unsure(c.Cell) {
		// What this region returned to the peer before the loss is not known.
		g.Status = StatusRecovering
		return g
	}
	if h.Kind != FixedWindow && c.At > c.Cell.OpensAt(h.Cell) && now < c.At {
		// The peer gave the rights up at c.At. If this region, behind in time, took them now, both
		// regions would have the rate for the time between. Use that had faded at the peer would
		// still weigh here.
		g.Status = StatusEarly
		return g
	}
	row := h.rows[c.Cell][c.Peer]
	if c.Returned > row.Lent || c.Lent-row.Returned > c.Most || c.Burst > c.MostBurst {
		g.Status = StatusImplausible
		return g
	}
	if h.full(c.Cell, c.Peer) {
		g.Status = StatusCrowded
		return g
	}
	heard := row
	heard.Borrowed, heard.Regained = max(row.Borrowed, c.Lent), max(row.Regained, c.Returned)
	// All possible loans count as lent, so none of them is regained.
	if h.unsure(c.Cell) {
		heard.Regained = row.Regained
	}
	if c.Cell == h.cell { // burst rights are for the current cell only
		heard.BurstBorrowed = max(row.BurstBorrowed, c.Burst)
	}
	if heard != row {
		l = h.change(l, c.Cell, c.Peer, heard, heard.BurstBorrowed-row.BurstBorrowed)
	}
	g.State, g.Row = h.show(l), heard
	return g
}

// Inspect answers the inspect script at store time t.
func (w *Twin) Inspect(t quantity.StoreTime, c Inspect) Inspected {
	head := w.enter(t, c.Fence, c.Terms)
	if head.Status != StatusOK {
		return Inspected{Head: head}
	}
	now := head.Now
	h := w.hold(c.Key, c.Terms, now)
	return h.inspected()
}

func (h held) inspected() Inspected {
	g := Inspected{Head: Head{Now: h.now}, State: h.show(h.limiter())}
	for cell, rows := range h.rows {
		for peer, row := range rows {
			if h.Weighs(cell) > h.now {
				g.Rows = append(g.Rows, PeerRow{Cell: cell, Peer: peer, Row: row})
			}
		}
	}
	sortRows(g.Rows)
	return g
}

// current returns StatusOK if rows of a cell may still be moved, else why not.
func (h held) current(cell quantity.Cell) Status {
	switch {
	case cell != h.cell && cell != h.cell+1,
		cell > h.cell && h.Kind == FixedWindow && h.Opens(cell).Sub(h.now) > Advance:
		return StatusFinished
	case !h.open(cell):
		return StatusRecovering
	}
	return StatusOK
}
