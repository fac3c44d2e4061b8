package algorithms

import (
	"math"
	"strconv"
	"strings"
)

// Twin is a region's store in Go: it answers every call as the scripts do. It is the reference the Lua is tested
// against, and what the protocol's tests and simulations run on. Not safe for concurrent use.
type Twin struct {
	Generation uint64 // 0: no token
	Region     string
	Epoch      string
	mark       int64
	lostAt     int64
	floors     map[string]uint64
	buckets    map[string]*bucket
}

// bucket is one bucket's hash.
type bucket struct {
	cell, used int64 // fixed_window: units used in cell
	rows       map[int64]map[string]Row
	expires    int64
}

// Open answers the open script at store time t (us).
func (w *Twin) Open(t int64, c Open) Opened {
	if w.Generation == c.Expected {
		w.Generation, w.Region, w.Epoch, w.lostAt = c.Generation, c.Region, c.Epoch, 0
		if c.Lost {
			w.lostAt = max(t, w.mark, c.Seen)
			w.mark = w.lostAt
		}
		return Opened{OK: true, Generation: c.Generation, Region: c.Region, Epoch: c.Epoch, LostAt: w.lostAt}
	}
	return Opened{Generation: w.Generation, Region: w.Region, Epoch: w.Epoch, LostAt: w.lostAt}
}

// Adopt answers the adopt script.
func (w *Twin) Adopt(c Adopt) Adopted {
	switch {
	case w.Generation == 0 || w.Generation != c.Generation:
		return Adopted{}
	case w.Epoch != c.Epoch && version(c.Epoch) <= version(w.Epoch):
		return Adopted{Epoch: w.Epoch}
	}
	w.Epoch = c.Epoch
	return Adopted{OK: true, Epoch: w.Epoch}
}

// version returns the number that an epoch begins with, 0 if it has none.
func version(epoch string) int64 {
	digits, _, _ := strings.Cut(epoch, "-")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

// Flush loses everything, as FLUSHALL does.
func (w *Twin) Flush() { *w = Twin{} }

// Decide answers the decide script at store time t.
func (w *Twin) Decide(t int64, c Decide) Decided {
	now, status := w.enter(t, c.Guard)
	if status != StatusOK {
		return Decided{Status: status}
	}
	open := make([]limiter, len(c.Buckets))
	for i, b := range c.Buckets {
		open[i] = w.limiter(b.Key, b.Terms, now)
	}
	d := Decided{Now: now}
	for _, cost := range c.Costs {
		if cost < 1 || cost > MaxUnits {
			return Decided{Status: StatusImplausible}
		}
		a := Answer{Admitted: true, Verdicts: make([]Verdict, len(open))}
		for i, l := range open {
			if !l.fits(cost) {
				a.Verdicts[i].Retry = l.retry(cost)
				a.Admitted = a.Admitted && c.Buckets[i].Shadow
			}
		}
		for i, l := range open {
			if a.Admitted && a.Verdicts[i].Retry == 0 {
				l.take(cost)
			}
			a.Verdicts[i].Remaining = l.remaining()
		}
		d.Answers = append(d.Answers, a)
	}
	for i, l := range open {
		if c.Commit {
			l.save(w.bucket(c.Buckets[i].Key))
		}
		d.Buckets = append(d.Buckets, l.state())
	}
	return d
}

// Lend answers the lend script at store time t.
func (w *Twin) Lend(t int64, c Lend) Given {
	now, status := w.enter(t, c.Guard)
	if status != StatusOK {
		return Given{Status: status}
	}
	l := w.limiter(c.Key, c.Terms, now)
	s := l.state()
	g := Given{Now: now, Cell: s.Cell}
	if g.Status = w.current(c.Cell, s.Cell, c.Terms.Window); g.Status != StatusOK {
		return g
	}
	b := w.bucket(c.Key)
	row := b.rows[c.Cell][c.Peer]
	free := l.spare(c.Cell) - c.Kept
	back := int64(0)
	if c.Cell == s.Cell {
		back = max(min(c.Returned-row.Returned, row.Borrowed-row.Returned, free), 0)
	}
	room := min(free-back, c.Cap-b.lentOut(c.Cell))
	more := max(min(c.Lent-row.Lent, room), 0)
	row.Returned += back
	row.Lent += more
	if back+more > 0 {
		b.setRow(c.Cell, c.Peer, row)
		b.keep(s.Cell, c.Terms.Window)
	}
	g.Row, g.Spare = row, max(room-more, 0)
	g.Share, g.Used = shareOf(s, c.Cell)
	g.Share -= back + more
	return g
}

// Credit answers the credit script at store time t.
func (w *Twin) Credit(t int64, c Credit) Credited {
	now, status := w.enter(t, c.Guard)
	if status != StatusOK {
		return Credited{Status: status}
	}
	s := w.limiter(c.Key, c.Terms, now).state()
	g := Credited{Now: now, Cell: s.Cell}
	if c.PeerGeneration < w.floors[c.Peer] {
		g.Status = StatusFenced
		return g
	}
	if w.floors == nil {
		w.floors = map[string]uint64{}
	}
	w.floors[c.Peer] = c.PeerGeneration
	if g.Status = w.current(c.Cell, s.Cell, c.Terms.Window); g.Status != StatusOK {
		return g
	}
	b := w.bucket(c.Key)
	row := b.rows[c.Cell][c.Peer]
	if c.Returned > row.Lent || c.Lent-row.Returned > c.Most {
		g.Status = StatusImplausible
		return g
	}
	heard := row
	heard.Borrowed = max(row.Borrowed, c.Lent)
	heard.Regained = max(row.Regained, c.Returned)
	if heard != row {
		b.setRow(c.Cell, c.Peer, heard)
	}
	b.keep(s.Cell, c.Terms.Window)
	g.Row = heard
	g.Share, g.Used = shareOf(s, c.Cell)
	g.Share += heard.net() - row.net()
	return g
}

// Inspect answers the inspect script at store time t.
func (w *Twin) Inspect(t int64, c Inspect) Inspected {
	now, status := w.enter(t, c.Guard)
	if status != StatusOK {
		return Inspected{Status: status}
	}
	s := w.limiter(c.Key, c.Terms, now).state()
	g := Inspected{Now: now, Cell: s.Cell, Used: s.Used, Share: s.Share, NextShare: s.NextShare}
	for cell := s.Cell; cell <= s.Cell+1; cell++ {
		for peer, row := range w.bucket(c.Key).rows[cell] {
			g.Rows = append(g.Rows, PeerRow{Cell: cell, Peer: peer, Row: row})
		}
	}
	sortRows(g.Rows)
	return g
}

// enter checks the guard and advances the high-water mark of time.
func (w *Twin) enter(t int64, g Guard) (int64, Status) {
	switch {
	case w.Generation == 0 || w.Generation != g.Generation || w.Epoch != g.Epoch:
		return 0, StatusUnknown
	case t-g.Clock > MaxClockStep || g.Clock-t > MaxClockStep:
		return 0, StatusClock
	}
	w.mark = max(w.mark, t)
	w.expire()
	return w.mark, StatusOK
}

// expire drops buckets whose last useful moment is longer ago than a clock step.
func (w *Twin) expire() {
	for key, b := range w.buckets {
		if b.expires+MaxClockStep < w.mark {
			delete(w.buckets, key)
		}
	}
}

// bucket returns a bucket's hash, empty where there is none.
func (w *Twin) bucket(key string) *bucket {
	b := w.buckets[key]
	if b == nil {
		if w.buckets == nil {
			w.buckets = map[string]*bucket{}
		}
		b = &bucket{rows: map[int64]map[string]Row{}, expires: math.MaxInt64 - MaxClockStep}
		w.buckets[key] = b
	}
	return b
}

// limiter opens a bucket under its algorithm at time now.
func (w *Twin) limiter(key string, t Terms, now int64) limiter {
	return openFixedWindow(w.bucket(key), now, w.lostAt, t)
}

// current says whether rows of a cell may still be moved.
func (w *Twin) current(cell, now, window int64) Status {
	switch {
	case cell != now && cell != now+1:
		return StatusFinished
	case lost(cell, window, w.lostAt):
		return StatusRecovering
	}
	return StatusOK
}

// shareOf returns the rights and the use of s's cell or the one after.
func shareOf(s State, cell int64) (share, used int64) {
	if cell == s.Cell {
		return s.Share, s.Used
	}
	return s.NextShare, 0
}
