package algorithms

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quotad/quotad/quantity"
)

// booking identifies the units that a node admitted without the store in one window.
type booking struct {
	node   string
	window quantity.Cell
}

// Recall answers the recall script at store time t.
func (w *Twin) Recall(t quantity.StoreTime, c Recall) Recalled {
	head := w.enter(t, c.Fence, c.Terms)
	if head.Status != StatusOK {
		return Recalled{Head: head}
	}
	now := head.Now
	h := w.find(c.Key, c.Terms, c.ExistsUntil, now)
	if c.PeerGeneration < w.floors[c.Peer] {
		return Recalled{Head: Head{Status: StatusFenced}}
	}
	w.raiseFloor(c.Peer, c.PeerGeneration)
	g := Recalled{Head: Head{Now: now, LostAt: h.loss}}
	if g.LostAt > 0 && h.Weighs(h.CellAt(g.LostAt)+1) <= now {
		g.LostAt = 0
	}
	for _, cell := range slices.Sorted(maps.Keys(h.rows)) {
		if row, ok := h.rows[cell][c.Peer]; ok && h.Weighs(cell) > now {
			g.Rows = append(g.Rows, RememberedRow{Cell: cell, Lent: row.Borrowed,
				Returned: row.Regained})
		}
	}
	return g
}

func (w *Twin) raiseFloor(peer string, generation uint64) {
	put(&w.floors, peer, max(w.floors[peer], generation))
}

// Restore answers the restore script at store time t.
func (w *Twin) Restore(t quantity.StoreTime, c Restore) Restored {
	head := w.enter(t, c.Fence, c.Terms)
	if head.Status != StatusOK {
		return Restored{Head: head}
	}
	now := head.Now
	h := w.hold(c.Key, c.Terms, now)
	known, first := map[string]bool{}, false
	switch {
	case h.closed() > h.now && h.lostAt == c.LostAt:
		first = true
		l := h.limiter()
		if c.Most == 0 {
			l.restore(c.Use)
		}
		h.bucket.whole, h.bucket.unknown = c.LostAt, map[string]bool{}
		h.bucket.base, h.bucket.most = 0, 0
		if c.Most > 0 && !h.Kind.Bucket() {
			h.bucket.base, h.bucket.most = l.known(), c.Most
		}
		l.save()
		for _, peer := range c.UnknownPeers {
			h.bucket.unknown[peer] = true
		}
		for _, peer := range c.KnownPeers {
			known[peer] = true
		}
	case h.lostAt == 0 && h.whole == c.LostAt && (len(h.unknown) > 0 || h.most > 0):
		told := h.most > 0 && c.Most == 0
		switch {
		case told:
			h.hear(c.Use)
		case h.most == 0:
			l := h.limiter()
			l.restore(c.Use)
			l.save()
		}
		for _, peer := range c.KnownPeers {
			known[peer] = h.unknown[peer]
			delete(h.unknown, peer)
		}
		if !told && !slices.Contains(slices.Collect(maps.Values(known)), true) {
			return h.inspected()
		}
	default:
		return h.inspected()
	}
	h.restoreRows(c, known, first)
	return w.hold(c.Key, c.Terms, now).inspected()
}

// hear takes in what all nodes together used before the loss. Since the loss nothing was admitted,
// only booked, so the use from before comes on top.
func (h held) hear(u Use) {
	l, of, more := h.limiter(), h.CellAt(h.whole), max(u.Units-h.base, 0)
	switch {
	case h.Kind == SlidingWindowLog:
		if u.At.Add(h.Window) > h.now {
			l.book(of, more)
		}
	case u.Cell < of:
		l.restore(u)
	default:
		l.book(of, more)
	}
	l.save()
	h.bucket.most = 0
}

// restoreRows writes the rows of the known peers. In each cell it adds one row for all unknown
// peers together, which lends everything that the cap leaves.
//
// The bucket may be from an older copy of the store. Of that, restoreRows keeps only what others
// have confirmed: borrowed rights may have been returned since the copy was made. Loans that were
// written into the copy before anybody noticed were never announced.
func (h held) restoreRows(c Restore, known map[string]bool, first bool) {
	last := h.CellAt(c.LostAt) + 1
	for cell, rows := range h.rows {
		for peer, row := range rows {
			switch {
			case cell > last:
				continue
			case h.unknown[peer]:
				row.Borrowed = row.Returned
				if first {
					row.Lent, row.Regained = 0, 0
				}
			case first:
				row.Lent, row.Returned = row.Regained, 0 // only what was lent can be regained
			}
			rows[peer] = row
		}
	}
	for _, r := range c.Rows {
		if !known[r.Peer] || r.Cell > last || h.Weighs(r.Cell) <= h.now {
			continue
		}
		row := h.rows[r.Cell][r.Peer]
		row.Lent, row.Returned = max(row.Lent, r.Lent), max(row.Returned, r.Returned)
		row.Borrowed = max(row.Borrowed, row.Returned) // only what is borrowed can be returned
		h.setRow(r.Cell, r.Peer, row)
	}
	for cell := last; h.Weighs(cell) > h.now; cell-- {
		rest := fmt.Sprintf("?%d", cell)
		delete(h.rows[cell], rest)
		out, _ := h.out(cell)
		if len(h.unknown) > 0 && c.Cap > out {
			h.setRow(cell, rest, Row{Lent: c.Cap - out})
		}
		if len(h.rows[cell]) == 0 {
			delete(h.rows, cell)
		}
	}
	h.stored = true
	h.keep()
}

// Book answers the book script at store time t.
func (w *Twin) Book(t quantity.StoreTime, c Book) Booked {
	head := w.enter(t, c.Fence, c.Terms)
	if head.Status != StatusOK {
		return Booked{Head: head}
	}
	now := head.Now
	h := w.find(c.Key, c.Terms, c.ExistsUntil, now)
	if h.lost() {
		return Booked{Head: h.lostHead()}
	}
	over := func(b booking) bool {
		return h.Windows().Opens(b.window+2).Add(h.ClockMargin) <= now
	}
	b := booking{c.Node, c.Window}
	if over(b) || c.Units <= h.booked[b] {
		return Booked{Head: head, Done: true}
	}
	l := h.limiter()
	if !l.book(c.Window, c.Units-h.booked[b]) {
		return Booked{Head: head}
	}
	l.save()
	maps.DeleteFunc(h.bucket.booked, func(b booking, _ quantity.Units) bool { return over(b) })
	put(&h.bucket.booked, b, c.Units)
	h.keep()
	h.expires = max(h.expires, h.Windows().Opens(b.window+2).Add(h.ClockMargin))
	return Booked{Head: head, Done: true}
}
