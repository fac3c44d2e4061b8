package algorithms

// fixedWindow admits when used[k] + cost <= S[k].
type fixedWindow struct {
	State
	now, window, taken int64
}

func openFixedWindow(b *bucket, now, lostAt int64, t Terms) *fixedWindow {
	f := &fixedWindow{now: now, window: t.Window}
	f.Cell = CellAt(now, t.Window)
	f.Entitlement = t.Entitlement
	f.Share = b.rights(f.Cell, t.Window, lostAt, t.Entitlement)
	f.NextShare = b.rights(f.Cell+1, t.Window, lostAt, t.Entitlement)
	if b.cell == f.Cell {
		f.Used = b.used
	}
	return f
}

func (f *fixedWindow) fits(cost int64) bool { return f.Used+cost <= f.Share }

func (f *fixedWindow) retry(cost int64) int64 {
	next := (f.Cell+1)*f.window - f.now
	switch {
	case cost <= f.NextShare:
		return next
	case cost <= f.Entitlement:
		return next + f.window
	}
	return -1
}

func (f *fixedWindow) take(cost int64) { f.Used += cost; f.taken += cost }

func (f *fixedWindow) remaining() int64 { return max(f.Share-f.Used, 0) }

func (f *fixedWindow) spare(cell int64) int64 {
	if cell == f.Cell {
		return f.Share - f.Used
	}
	return f.NextShare
}

func (f *fixedWindow) state() State { return f.State }

func (f *fixedWindow) save(b *bucket) {
	if f.taken == 0 {
		return
	}
	b.keep(f.Cell, f.window)
	b.cell, b.used = f.Cell, f.Used
}
