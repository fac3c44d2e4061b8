package algorithms

import "github.com/quotad/quotad/quantity"

// window is fixed_window: it admits when used[k] + cost <= S[k].
type window struct {
	burstless
	held
	used   quantity.Units
	hidden quantity.Units // part of used that no node has reported; see untold
	dirty  bool
}

func openWindow(h held) limiter {
	w := &window{held: h}
	if h.bucket.cell == h.cell {
		w.used = h.bucket.used
	}
	w.hidden = h.untold()
	w.used += w.hidden
	return w
}

func (w *window) state() State {
	// What is assigned is a part of the rights, and counts as used.
	held := w.assigned(w.cell)
	share, used := w.rights(w.cell)+held, w.used+held
	return State{Cell: w.cell, Entitlement: w.Entitlement, Share: share,
		NextShare: w.rights(w.cell+1) + w.assigned(w.cell+1), Reset: w.resetAfter(used),
		Used: used, Free: max(share-used, 0)}
}

// resetAfter returns when the cell ends, if anything was used in it.
func (w *window) resetAfter(used quantity.Units) int64 {
	if used <= 0 {
		return 0
	}
	return w.Opens(w.cell + 1).Sub(w.now)
}

func (w *window) fits(cost quantity.Units, part quantity.PPM) bool {
	return cost <= Portion(w.rights(w.cell), part)-w.used
}

func (w *window) retry(cost quantity.Units, part quantity.PPM) int64 {
	for cell := w.cell + 1; ; cell++ {
		if w.open(cell) && cost <= Portion(w.rights(cell), part) {
			return w.Opens(cell).Sub(w.now)
		}
		if w.open(cell) && cell > w.lastRow() {
			return -1
		}
	}
}

func (w *window) take(cost quantity.Units) int64 {
	w.used += cost
	w.dirty = true
	return 0
}

func (w *window) charge(cost, _ quantity.Units) { w.take(min(cost, MaxUnits-w.used)) }

func (w *window) spare(kept quantity.Units) quantity.Units {
	return w.rights(w.cell) - w.used - kept
}

func (w *window) room(cell quantity.Cell, _ string, kept quantity.Units) quantity.Units {
	if cell == w.cell {
		return w.spare(kept)
	}
	return w.rights(cell) - kept
}

func (w *window) refund(_ quantity.StoreTime, cell quantity.Cell,
	units quantity.Units) (quantity.Units, Refusal) {
	if cell != w.cell {
		return 0, NoLongerWeighs
	}
	units = min(units, w.used-w.hidden)
	w.used -= units
	w.dirty = true
	return units, NotRefused
}

func (w *window) book(cell quantity.Cell, units quantity.Units) bool {
	if cell == w.cell {
		w.used += units
		w.dirty = true
	}
	return cell <= w.cell
}

func (w *window) restore(u Use) {
	if u.Cell == w.cell {
		w.used = max(w.used, u.Units)
		w.dirty = true
	}
}

func (w *window) known() quantity.Units { return w.used - w.hidden }

func (w *window) reset() { w.used, w.hidden, w.dirty = 0, 0, true }

func (w *window) save() {
	if !w.dirty {
		return
	}
	w.stored = true
	if w.bucket.cell != w.cell {
		w.keep()
	}
	w.bucket.cell, w.bucket.used = w.cell, w.used-w.hidden
}
