package algorithms

import "github.com/quotad/quotad/quantity"

// Assign answers the assign script at store time t.
func (w *Twin) Assign(t quantity.StoreTime, c Assign) Assigned {
	head := w.enter(t, c.Fence, c.Terms)
	if head.Status != StatusOK {
		return Assigned{Head: head}
	}
	h := w.find(c.Key, c.Terms, c.ExistsUntil, head.Now)
	l := h.limiter()
	if h.lost() {
		return Assigned{Head: h.lostHead()}
	}
	g := Assigned{Head: head, State: h.show(l)}
	if g.Status = h.current(c.Cell); g.Status != StatusOK {
		return g
	}
	node := assignedMark + c.Holder
	row, has := h.rows[c.Cell][node]
	crowded := !has && h.holders(c.Cell) >= MaxHolders
	if row.Lent < c.Known { // lost and restored: what was held counts as used
		c.Held, c.Returned = 0, 0
	}
	if crowded && c.Held > 0 {
		g.Status = StatusCrowded
		return g
	}
	if back := min(c.Returned, row.Lent); back > row.Regained {
		row.Regained = back
		l = h.change(l, c.Cell, node, row, 0)
	}
	room := max(l.room(c.Cell, node, max(c.Kept, 0)), 0)
	if crowded {
		room = 0
	}
	more := max(min(c.Held-row.Lent, room), 0)
	if more > 0 {
		row.Lent += more
		l = h.change(l, c.Cell, node, row, 0)
	}
	g.State, g.Held, g.Returned, g.Spare = h.show(l), row.Lent, row.Regained, room-more
	return g
}
