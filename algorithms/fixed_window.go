package algorithms

// window is fixed_window: it admits when used[k] + cost <= S[k].
type window struct {
	burstless
	held
	used   int64
	hidden int64 // part of used that no node has reported; see untold
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
	share := w.rights(w.cell)
	return State{Cell: w.cell, Entitlement: w.Entitlement, Share: share, NextShare: w.rights(w.cell + 1),
		Used: w.used, Free: max(share-w.used, 0)}
}

func (w *window) fits(cost int64) bool { return cost <= w.rights(w.cell)-w.used }

func (w *window) retry(cost int64) int64 {
	for cell := w.cell + 1; ; cell++ {
		if w.open(cell) && cost <= w.rights(cell) {
			return cell*w.Cell - w.now
		}
		if w.open(cell) && cell > w.lastRow() {
			return -1
		}
	}
}

func (w *window) take(cost int64) int64 {
	w.used += cost
	w.dirty = true
	return 0
}

func (w *window) spare(kept int64) int64 { return w.rights(w.cell) - w.used - kept }

func (w *window) room(cell int64, _ string, kept int64) int64 {
	if cell == w.cell {
		return w.spare(kept)
	}
	return w.rights(cell) - kept
}

func (w *window) refund(_, cell, units int64) (int64, Refusal) {
	if cell != w.cell {
		return 0, NoLongerWeighs
	}
	units = min(units, w.used-w.hidden)
	w.used -= units
	w.dirty = true
	return units, NotRefused
}

func (w *window) book(cell, units int64) bool {
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

func (w *window) known() int64 { return w.used - w.hidden }

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
