package algorithms

import "maps"

// CellAt returns the number of the cell of the given length that holds store time t.
func CellAt(t, length int64) int64 { return t / length }

// net is what a row adds to the rights of its cell.
func (r Row) net() int64 { return r.in() - r.out() }

// in and out are the rights of a cell held from a peer, and with a peer.
func (r Row) in() int64  { return r.Borrowed - r.Returned }
func (r Row) out() int64 { return r.Lent - r.Regained }

// bucket is one bucket's hash.
type bucket struct {
	rows    map[int64]map[string]Row
	expires int64
	stored  bool  // there is something of it in the store
	kept    int64 // number of the call that last had it kept

	vanished int64           // store time at which it was found deleted
	whole    int64           // time of the loss after which it was restored
	unknown  map[string]bool // peers of which it is not known what they were lent before
	// base is what is known of the use before the loss and most what there can have been, where not all nodes of the region
	// told; most 0: all did.
	base, most int64
	booked     map[booking]int64

	cell, used, before int64           // windows: units used in cell, and in the one before
	entries            []entry         // log
	sums               map[int64]int64 // log: units by the cell that they were admitted in
	written            int64           // log, buckets: cell in which the hash was last kept
	tick               int64           // buckets: length of a tick
	known              bool            // buckets: level, at and mark say something
	level, at          int64           // numerator over the ticks of a window, and the tick it is of
	mark               int64           // token_bucket: tick at which tokens were last lost to a full bucket; leaky_bucket: next turn
}

// held is a bucket at one moment, under its terms.
type held struct {
	*bucket
	Terms
	now    int64
	lostAt int64 // 0: nothing is missing
	loss   int64 // the last one, mended or not
	call   int64 // number of the call
	cell   int64 // the current one
}

func (b *bucket) hold(t Terms, now, lostAt, call int64) held {
	h := held{bucket: b, call: call, Terms: t, now: now, lostAt: max(lostAt, b.vanished), cell: CellAt(now, t.Cell)}
	h.loss = max(h.lostAt, b.whole)
	if b.whole >= h.lostAt {
		h.lostAt = 0
	}
	return h
}

// lost says whether the bucket must be restored before it can be used.
func (h held) lost() bool { return h.Recovered && h.closed() > h.now }

// lostHead is what is answered where the bucket must be restored first.
func (h held) lostHead() Head { return Head{Status: StatusLost, Now: h.now, LostAt: h.lostAt} }

// closed returns the time until which this region holds no rights because its store lost data: what it had then may
// have concerned the cell of that moment and the next, and counts as fully lent and fully used for as long as it weighs.
func (h held) closed() int64 {
	if h.lostAt == 0 {
		return 0
	}
	return h.Weighs(CellAt(h.lostAt, h.Cell) + 1)
}

// open says whether rights of a cell are not closed by a loss.
func (h held) open(cell int64) bool { return cell*h.Cell >= h.closed() }

// rights returns S of a cell as the rows of that cell alone have it.
func (h held) rights(cell int64) int64 {
	if !h.open(cell) {
		return 0
	}
	s := h.Entitlement
	for _, row := range h.rows[cell] {
		s += row.net()
	}
	return s
}

// in returns the rights of a cell that are borrowed.
func (h held) in(cell int64) (sum int64) {
	for _, row := range h.rows[cell] {
		sum += row.in()
	}
	return sum
}

// out returns what of a cell is lent, and what burst.
func (h held) out(cell int64) (units, burst int64) {
	for _, row := range h.rows[cell] {
		units += row.out()
		burst += row.BurstLent
	}
	return units, burst
}

// peers returns the peers there is any row with.
func (h held) peers() map[string]bool {
	all := map[string]bool{}
	for _, rows := range h.rows {
		for peer := range rows {
			all[peer] = true
		}
	}
	return all
}

// lastRow returns the last cell that has a row, or one before all cells.
func (h held) lastRow() int64 {
	last := int64(-1)
	for cell := range h.rows {
		last = max(last, cell)
	}
	return last
}

// full says whether there are so many rows that there is room for none more, of a peer that has none in the cell.
func (h held) full(cell int64, peer string) bool {
	if _, known := h.rows[cell][peer]; known {
		return false
	}
	var count int64
	for _, rows := range h.rows {
		count += int64(len(rows))
	}
	return count >= MaxRows(h.Kind)
}

func (b *bucket) setRow(cell int64, peer string, row Row) {
	b.stored = true
	if b.rows[cell] == nil {
		b.rows[cell] = map[string]Row{}
	}
	b.rows[cell][peer] = row
}

// keep drops the rows that weigh no more, and says until when the hash must live.
func (h held) keep() {
	maps.DeleteFunc(h.rows, func(cell int64, _ map[string]Row) bool { return h.Weighs(cell) <= h.now })
	if last := max(h.vanished, h.whole); last > 0 && h.Weighs(CellAt(last, h.Cell)+1) <= h.now {
		h.bucket.vanished, h.bucket.whole, h.bucket.unknown, h.bucket.most = 0, 0, nil, 0
	}
	h.expires, h.kept = h.Useful(h.cell), h.call
}

// show returns the bucket's state.
func (h held) show(l limiter) State {
	s := l.state()
	last := h.bucket.cell
	if h.Kind.Bucket() || h.Kind == SlidingWindowLog {
		last = h.written
	}
	if last == h.cell || h.kept == h.call && last < h.cell { // a later one was kept by a store whose token is gone
		s.ExistsUntil = h.Weighs(max(h.cell, h.lastRow())) + h.fillTime()
	}
	if h.unsure(h.cell) || h.untoldUntil() > h.now {
		s.Doubt = h.whole
	}
	if shut := max(h.closed(), h.untoldUntil()); shut > h.now {
		s.Shut = shut
	}
	return s
}

// unsure says whether it is not known of a cell what some peers were lent before a loss.
func (h held) unsure(cell int64) bool {
	return h.lostAt == 0 && len(h.unknown) > 0 && cell <= CellAt(h.whole, h.Cell)+1
}

// untold returns what counts as used because not all nodes have told what they used before the loss, beyond what is known.
func (h held) untold() int64 {
	if h.untoldUntil() <= h.now {
		return 0
	}
	return max(h.most-h.base, 0)
}

// untoldUntil returns until when use of before the loss weighs of which not all nodes have told; 0: all have.
func (h held) untoldUntil() int64 {
	switch {
	case h.lostAt != 0 || h.most == 0:
		return 0
	case h.Kind == SlidingWindowLog:
		return h.whole + h.Window
	case h.Kind == SlidingWindowCounter:
		return (CellAt(h.whole, h.Cell) + 2) * h.Cell
	}
	return (CellAt(h.whole, h.Cell) + 1) * h.Cell
}

// limiter is one algorithm at work on one bucket at one moment.
type limiter interface {
	state() State
	fits(cost int64) bool
	// retry returns after how many us cost fits if nothing else happens; -1: never on the entitlement alone.
	retry(cost int64) int64
	// take charges a cost that fits and returns after how many us its turn has come.
	take(cost int64) int64
	// spare returns the rights of the current cell that may be given back, beyond kept units.
	spare(kept int64) int64
	// room returns what more of a cell, this one or the next, may be lent to a peer, beyond kept units.
	room(cell int64, peer string, kept int64) int64
	// roomBurst returns what more burst may be lent, beyond kept tokens.
	roomBurst(kept int64) int64
	// settle fixes what has happened so far, before rows change, and adds burst tokens that came or went.
	settle(tokens int64)
	// refund takes back a charge of a cell at a time and returns the units, or why not.
	refund(at, cell, units int64) (int64, Refusal)
	// book charges what was admitted in a window without the store, whether it fits or not; false: the window has not
	// begun here.
	book(window, units int64) bool
	// restore of a window: at least so much was used, as seen in a cell at a time.
	restore(u Use)
	// known of a window is what is known to be used that weighs since before the last loss.
	known() int64
	reset()
	save()
}

// limiter returns the bucket's algorithm at work.
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

// burstless is what algorithms without burst rights say of them.
type burstless struct{}

func (burstless) roomBurst(int64) int64 { return 0 }
func (burstless) settle(int64)          {}

// unrestored is what buckets say of restoring: they begin anew.
type unrestored struct{}

func (unrestored) restore(Use)  {}
func (unrestored) known() int64 { return 0 }
