package algorithms

import (
	"maps"
	"strings"

	"github.com/quotad/quotad/quantity"
)

// CellAt returns the number of the cell of the given length that holds store time t.
func CellAt(t quantity.StoreTime, length int64) quantity.Cell {
	return quantity.Cell(int64(t) / length)
}

// net is what a row adds to the rights of its cell.
func (r Row) net() quantity.Units { return r.in() - r.out() }

// in returns the rights of a cell borrowed from the peer, out those lent to the peer.
func (r Row) in() quantity.Units  { return r.Borrowed - r.Returned }
func (r Row) out() quantity.Units { return r.Lent - r.Regained }

// bucket is one bucket's hash in the store.
type bucket struct {
	rows    map[quantity.Cell]map[string]Row
	expires quantity.StoreTime // when it is stored
	stored  bool               // the store holds something of the bucket
	kept    int64              // number of the call that last ran keep

	vanished quantity.StoreTime // store time at which the bucket was found deleted
	whole    quantity.StoreTime // time of the loss after which it was restored
	unknown  map[string]bool    // peers whose loans from before the loss are not known
	// base is the known use from before the loss, most the largest possible. They count if some
	// node of the region has not reported its use. most 0: all nodes have.
	base, most quantity.Units
	booked     map[booking]quantity.Units

	cell quantity.Cell
	// windows: units used in cell, and in the one before
	used, before quantity.Units
	entries      []entry // log
	// log: units by the cell in which they were admitted
	sums    map[quantity.Cell]quantity.Units
	written quantity.Cell // log: cell in which keep last ran
	tick    int64         // buckets: length of a tick
	known   bool          // buckets: level, at and mark are valid
	// numerator over the ticks of a window, the tick it belongs to, and the entitlement under which
	// it was written
	level    quantity.Units
	at       int64
	entitled quantity.Units
	// token_bucket: tick at which a full bucket last lost tokens; leaky_bucket: tick before which
	// no further turn begins.
	mark int64
}

// held is a bucket at one moment, under its terms.
type held struct {
	*bucket
	Terms
	now    quantity.StoreTime
	lostAt quantity.StoreTime // time of a loss that is not yet restored; 0: none
	loss   quantity.StoreTime // time of the last loss, restored or not
	call   int64              // number of the call
	cell   quantity.Cell      // the current cell
}

func (b *bucket) hold(t Terms, now, lostAt quantity.StoreTime, call int64) held {
	h := held{bucket: b, call: call, Terms: t, now: now, lostAt: max(lostAt, b.vanished),
		cell: t.CellAt(now)}
	if t.Calendar != nil && b.cell == h.cell+1 {
		h.cell = b.cell // a node with other rules of the time zone says that it has begun
	}
	h.loss = max(h.lostAt, b.whole)
	if b.whole >= h.lostAt {
		h.lostAt = 0
	}
	return h
}

// lost reports whether the bucket must be restored before use.
func (h held) lost() bool { return h.Recovered && h.closed() > h.now }

// lostHead is the answer about a bucket that must be restored first.
func (h held) lostHead() Head { return Head{Status: StatusLost, Now: h.now, LostAt: h.lostAt} }

// closed returns the store time until which this region holds no rights because its store lost
// data. The region may have lent or used anything in the cell of the loss and in the next one. Both
// count as fully lent and fully used for as long as they weigh. 0: nothing is missing.
func (h held) closed() quantity.StoreTime {
	if h.lostAt == 0 {
		return 0
	}
	return h.Weighs(h.CellAt(h.lostAt) + 1)
}

// open reports whether no loss closes the rights of a cell.
func (h held) open(cell quantity.Cell) bool { return h.Opens(cell) >= h.closed() }

// rights returns S of a cell, counting the rows of that cell alone; 0 if a loss closes the cell.
func (h held) rights(cell quantity.Cell) quantity.Units {
	if !h.open(cell) {
		return 0
	}
	s := h.Entitlement
	for _, row := range h.rows[cell] {
		s += row.net()
	}
	return s
}

// in returns the units borrowed in a cell.
func (h held) in(cell quantity.Cell) (sum quantity.Units) {
	for _, row := range h.rows[cell] {
		sum += row.in()
	}
	return sum
}

// out returns the units and the burst tokens lent in a cell.
func (h held) out(cell quantity.Cell) (units, burst quantity.Units) {
	for peer, row := range h.rows[cell] {
		if !assignedTo(peer) {
			units += row.out()
		}
		burst += row.BurstLent
	}
	return units, burst
}

// assigned returns what nodes of this region hold of a cell to assign it to Envoys.
func (h held) assigned(cell quantity.Cell) (units quantity.Units) {
	for peer, row := range h.rows[cell] {
		if assignedTo(peer) {
			units += row.out()
		}
	}
	return units
}

// assignedMark stands before the name of a node among the peers.
const assignedMark = "="

// assignedTo reports whether a row is of what a node holds for Envoys.
func assignedTo(peer string) bool { return strings.HasPrefix(peer, assignedMark) }

// peers returns the peers that have any row.
func (h held) peers() map[string]bool {
	all := map[string]bool{}
	for _, rows := range h.rows {
		for peer := range rows {
			all[peer] = true
		}
	}
	return all
}

// lastRow returns the last cell that has a row, or -1.
func (h held) lastRow() quantity.Cell {
	last := quantity.Cell(-1)
	for cell := range h.rows {
		last = max(last, cell)
	}
	return last
}

// holders returns how many nodes of this region have a row in a cell.
func (h held) holders(cell quantity.Cell) (count int64) {
	for peer := range h.rows[cell] {
		if assignedTo(peer) {
			count++
		}
	}
	return count
}

// full reports whether the bucket has no room for a row of a peer that has none in the cell. Rows that
// weigh no more take no room: keep drops them when the next is written. Rows of nodes take none: they
// have a bound of their own (MaxHolders).
func (h held) full(cell quantity.Cell, peer string) bool {
	if _, known := h.rows[cell][peer]; known {
		return false
	}
	var count int64
	for cell, rows := range h.rows {
		if h.Weighs(cell) > h.now {
			count += int64(len(rows)) - h.holders(cell)
		}
	}
	return count >= MaxRows(h.Kind)
}

func (b *bucket) setRow(cell quantity.Cell, peer string, row Row) {
	b.stored = true
	if b.rows[cell] == nil {
		b.rows[cell] = map[string]Row{}
	}
	b.rows[cell][peer] = row
}

// keep drops rows and losses that no longer weigh, and sets until when the hash must live. Of the
// buckets that never becomes sooner, whatever their terms have become: nodes may have been told of
// it.
func (h held) keep() {
	maps.DeleteFunc(h.rows,
		func(cell quantity.Cell, _ map[string]Row) bool { return h.Weighs(cell) <= h.now })
	if last := max(h.vanished, h.whole); last > 0 && h.Weighs(h.CellAt(last)+1) <= h.now {
		h.bucket.vanished, h.bucket.whole, h.bucket.unknown, h.bucket.most = 0, 0, nil, 0
	}
	until := h.Useful(h.cell)
	if h.Kind.Bucket() {
		until = max(until, h.expires)
	}
	h.expires, h.kept = until, h.call
	if h.Calendar != nil && h.bucket.cell < h.cell {
		// The rows of cells before are gone. So nobody may take one of them for the current cell,
		// not even a node with other rules of the time zone.
		h.bucket.cell, h.bucket.used, h.bucket.stored = h.cell, 0, true
	}
}

// show returns the bucket's state.
func (h held) show(l limiter) State {
	s := l.state()
	if h.keeps() {
		s.ExistsUntil = h.Weighs(max(h.cell, h.lastRow())).Add(h.FillTime())
	}
	if t, is := l.(*tokens); is && t.owes() && h.Entitlement > 0 && s.ExistsUntil > 0 {
		s.ExistsUntil = max(s.ExistsUntil, h.expires)
	}
	if h.unsure(h.cell) || h.untoldUntil() > h.now {
		s.Doubt = h.whole
	}
	if shut := max(h.closed(), h.untoldUntil()); shut > h.now {
		s.Shut, s.Reset = shut, max(s.Reset, shut.Sub(h.now))
	}
	return s
}

// keeps reports whether the hash is known to live as if it were last written in the current cell.
func (h held) keeps() bool {
	last := h.bucket.cell
	switch h.Kind {
	case TokenBucket, LeakyBucket:
		return h.expires >= h.Useful(h.cell)
	case SlidingWindowLog:
		last = h.written
	}
	// A later cell was written before the token was deleted: the mark of time has gone back since.
	return last == h.cell || h.kept == h.call && last < h.cell
}

// unsure reports whether a cell may hold loans from before a loss that are not known.
func (h held) unsure(cell quantity.Cell) bool {
	return h.lostAt == 0 && len(h.unknown) > 0 && cell <= h.CellAt(h.whole)+1
}

// untold returns the units that count as used because not all nodes have reported what they used
// before the loss: the most that is possible, less what is known.
func (h held) untold() quantity.Units {
	if h.untoldUntil() <= h.now {
		return 0
	}
	return max(h.most-h.base, 0)
}

// untoldUntil returns the store time until which use from before the loss weighs that not all nodes
// have reported; 0: all have.
func (h held) untoldUntil() quantity.StoreTime {
	switch {
	case h.lostAt != 0 || h.most == 0:
		return 0
	case h.Kind == SlidingWindowLog:
		return h.whole.Add(h.Window)
	case h.Kind == SlidingWindowCounter:
		return (CellAt(h.whole, h.Cell) + 2).OpensAt(h.Cell)
	}
	return h.Opens(h.CellAt(h.whole) + 1)
}

// limiter is one algorithm, working on one bucket at one moment.
type limiter interface {
	state() State
	// fits reports whether a cost fits into a part of the rights (of a token_bucket, of its
	// capacity), all use counted. A leaky_bucket has no parts.
	fits(cost quantity.Units, part quantity.PPM) bool
	// retry returns after how many us cost fits if nothing else happens; -1: never on the
	// entitlement alone.
	retry(cost quantity.Units, part quantity.PPM) int64
	// take charges a cost that fits, and returns after how many us its turn comes.
	take(cost quantity.Units) int64
	// charge charges a cost whether it fits or not. A token_bucket then owes mostOwed units at most.
	charge(cost, mostOwed quantity.Units)
	// spare returns the rights of the current cell that this region can return, beyond kept units.
	spare(kept quantity.Units) quantity.Units
	// room returns how many more units of a cell, this one or the next, this region can lend to a
	// peer, beyond kept units.
	room(cell quantity.Cell, peer string, kept quantity.Units) quantity.Units
	// roomBurst returns how many more burst tokens this region can lend, beyond kept tokens.
	roomBurst(kept quantity.Units) quantity.Units
	// settle brings the state up to now before rows change, and adds burst tokens that came (or
	// went, if negative).
	settle(tokens quantity.Units)
	// refund takes back a charge made in a cell at a store time. It returns the units, or why not.
	refund(at quantity.StoreTime, cell quantity.Cell, units quantity.Units) (quantity.Units,
		Refusal)
	// book charges units that were admitted without the store in a window, whether they fit or not.
	// It returns false if the window has not begun here.
	book(window quantity.Cell, units quantity.Units) bool
	// restore makes sure that at least the units of u count as used, as seen in u.Cell at u.At.
	// Windows only.
	restore(u Use)
	// known returns the units that are known to be used since before the last loss and still weigh.
	// Windows only.
	known() quantity.Units
	reset()
	save()
}

// limiter returns the bucket's algorithm.
func (h held) limiter() limiter {
	switch h.Kind {
	case SlidingWindowCounter:
		return openCounter(h)
	case SlidingWindowLog:
		return openLog(h)
	case TokenBucket:
		return openTokens(h)
	case LeakyBucket:
		return openQueue(h)
	}
	return openWindow(h)
}

// burstless is embedded by the algorithms without burst rights.
type burstless struct{}

func (burstless) roomBurst(quantity.Units) quantity.Units { return 0 }
func (burstless) settle(quantity.Units)                   {}

// unrestored is embedded by the buckets: they begin anew instead of being restored.
type unrestored struct{}

func (unrestored) restore(Use)           {}
func (unrestored) known() quantity.Units { return 0 }
