package algorithms

import (
	"maps"
	"slices"

	"github.com/quotad/quotad/quantity"
)

// entry is the units admitted at one store time.
type entry struct {
	at    quantity.StoreTime
	units quantity.Units
}

// log is sliding_window_log: it admits when the units of (t - W, t] and the cost fit into S. A unit
// lent in a cell is missing from the lender until a window (and the guard) after the cell's end.
// Each peer reduces S by the most it was lent in any one cell that still weighs, the next cell
// included.
type log struct {
	burstless
	held
	entries []entry                          // those still in the window
	sums    map[quantity.Cell]quantity.Units // units by the cell in which they were admitted
	used    quantity.Units
	dirty   bool
}

func openLog(h held) limiter {
	l := &log{held: h, sums: maps.Clone(h.bucket.sums)}
	for _, e := range h.bucket.entries {
		if e.at.Add(h.Window) > h.now {
			l.entries = append(l.entries, e)
			l.used += e.units
		}
	}
	return l
}

// missing returns how many units a peer's loans take from S at time t. It leaves out the rows of
// cell without.
func (l *log) missing(peer string, t quantity.StoreTime, without quantity.Cell) quantity.Units {
	var most quantity.Units
	for cell, rows := range l.rows {
		if cell != without && l.Weighs(cell) > t {
			most = max(most, rows[peer].out())
		}
	}
	return most
}

// rights returns S at time t.
func (l *log) rights(t quantity.StoreTime) quantity.Units {
	if t < l.closed() {
		return 0
	}
	s := l.Entitlement + l.in(CellAt(t, l.Cell))
	for peer := range l.peers() {
		s -= l.missing(peer, t, -1)
	}
	if t < l.untoldUntil() {
		s -= l.untold()
	}
	return s
}

func (l *log) opens(cell quantity.Cell) quantity.StoreTime { return cell.OpensAt(l.Cell) }

func (l *log) state() State {
	share := l.rights(l.now)
	return State{Cell: l.cell, Entitlement: l.Entitlement, Share: share,
		NextShare: l.rights(l.opens(l.cell + 1)), Reset: l.resetAfter(),
		Used: l.used, Fading: max(l.used-l.staying(), 0), Free: max(share-l.used, 0)}
}

// resetAfter returns when the last entry leaves the window. An entry that was refunded has no
// units.
func (l *log) resetAfter() int64 {
	for _, e := range slices.Backward(l.entries) {
		if e.units > 0 {
			return e.at.Add(l.Window).Sub(l.now)
		}
	}
	return 0
}

// staying returns the units that will still be in the window when the current cell ends: those of
// the last cells, as many as fit into a window.
func (l *log) staying() (units quantity.Units) {
	for cell, sum := range l.sums {
		if cell > l.cell-quantity.Cell(ceilDiv(l.Window, l.Cell)) {
			units += sum
		}
	}
	return units
}

func (l *log) fits(cost quantity.Units, part quantity.PPM) bool {
	return cost <= Portion(l.rights(l.now), part)-l.used
}

// retry tries each time at which S may change. Between those times, only entries leave the window.
func (l *log) retry(cost quantity.Units, part quantity.PPM) int64 {
	changes := []quantity.StoreTime{l.now, l.opens(l.cell + 1), l.opens(l.cell + 2)}
	for cell := range l.rows {
		changes = append(changes, l.Weighs(cell))
	}
	changes = append(changes, l.closed(), l.untoldUntil())
	slices.Sort(changes)
	for i, from := range changes {
		if from < l.now {
			continue
		}
		room := Portion(l.rights(from), part) - cost
		if room < 0 {
			continue
		}
		t := max(from, l.falls(room))
		if i == len(changes)-1 || t < changes[i+1] {
			return t.Sub(l.now)
		}
	}
	return -1
}

// falls returns the store time at which at most the given units are left in the window; 0: that is
// so already.
func (l *log) falls(units quantity.Units) quantity.StoreTime {
	left := l.used
	for _, e := range l.entries {
		if left <= units {
			break
		}
		left -= e.units
		if left <= units {
			return e.at.Add(l.Window)
		}
	}
	return 0
}

func (l *log) take(cost quantity.Units) int64 {
	l.used += cost
	l.count(l.cell, cost)
	if n := len(l.entries) - 1; n >= 0 && l.entries[n].at == l.now {
		l.entries[n].units += cost
	} else {
		l.entries = append(l.entries, entry{l.now, cost})
	}
	l.dirty = true
	return 0
}

// owedEntries is how many entries a log that owes has at most, or as many as it has rights.
const owedEntries = 64

// charge enters the cost. If the log owes and has many entries, the newest takes it and becomes one of
// now. So its units leave the window later, never sooner.
func (l *log) charge(cost, _ quantity.Units) {
	cost = min(cost, MaxUnits-l.used)
	n := len(l.entries)
	if n > 0 && quantity.Units(n) >= max(l.rights(l.now), owedEntries) && l.entries[n-1].at < l.now {
		newest := l.entries[n-1]
		l.entries, l.used = l.entries[:n-1], l.used-newest.units
		l.count(CellAt(newest.at, l.Cell), -newest.units)
		cost += newest.units
	}
	if cost > 0 {
		l.take(cost)
	}
}

// count adds to the units of a cell.
func (l *log) count(cell quantity.Cell, units quantity.Units) {
	put(&l.sums, cell, l.sums[cell]+units)
}

func (l *log) spare(kept quantity.Units) quantity.Units { return l.rights(l.now) - l.used - kept }

// room: as in counter.room, units that are missing anyhow cost nothing to lend, and rights of the
// next cell must be free now.
func (l *log) room(cell quantity.Cell, peer string, kept quantity.Units) quantity.Units {
	if l.spare(0) < 0 {
		return 0
	}
	lent := l.rows[cell][peer].out()
	now := max(lent, l.missing(peer, l.now, cell)) - lent
	if cell == l.cell {
		return now + l.spare(kept)
	}
	opens := l.opens(cell)
	then := max(lent, l.missing(peer, opens, cell)) - lent
	return min(now+l.spare(0), then+l.rights(opens)-kept)
}

func (l *log) refund(at quantity.StoreTime, cell quantity.Cell,
	units quantity.Units) (quantity.Units, Refusal) {
	if at.Add(l.Window) <= l.now {
		return 0, NoLongerWeighs
	}
	l.dirty = true
	for i := range l.entries {
		if l.entries[i].at == at {
			units = min(units, l.entries[i].units)
			l.entries[i].units -= units
			l.used -= units
			l.count(cell, -units)
			return units, NotRefused
		}
	}
	return 0, NotRefused
}

// maxNewest bounds the entries that refundNewest takes back.
const maxNewest = 16

// refundNewest takes back units of the newest entries.
func (l *log) refundNewest(units quantity.Units) (back quantity.Units, _ Refusal) {
	for range maxNewest {
		i := len(l.entries) - 1
		for i >= 0 && l.entries[i].units == 0 {
			i--
		}
		if i < 0 || back == units {
			break
		}
		at := l.entries[i].at
		given, _ := l.refund(at, CellAt(at, l.Cell), units-back)
		if given == 0 {
			break
		}
		back += given
	}
	return back, NotRefused
}

// book enters the units at the present time, because the log is in order of time.
func (l *log) book(_ quantity.Cell, units quantity.Units) bool {
	l.take(units)
	return true
}

// restore makes one entry of the units, at the time at which they were seen. So they leave the
// window later than they did, never sooner.
func (l *log) restore(u Use) {
	at := min(u.At, l.now)
	if u.Units > l.used && at.Add(l.Window) > l.now {
		l.entries, l.sums, l.used, l.dirty = []entry{{at, u.Units}},
			map[quantity.Cell]quantity.Units{CellAt(at, l.Cell): u.Units}, u.Units, true
	}
}

func (l *log) known() quantity.Units { return l.used }

func (l *log) reset() { l.entries, l.sums, l.used, l.dirty = nil, nil, 0, true }

func (l *log) save() {
	if !l.dirty {
		return
	}
	l.stored = true
	l.bucket.entries = slices.DeleteFunc(l.entries, func(e entry) bool { return e.units == 0 })
	l.bucket.sums = l.sums
	maps.DeleteFunc(l.bucket.sums, func(cell quantity.Cell, _ quantity.Units) bool {
		return cell < l.cell-quantity.Cell(ceilDiv(l.Window, l.Cell))
	})
	if l.written != l.cell {
		l.keep()
		l.written = l.cell
	}
}
