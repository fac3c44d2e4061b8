package allocator

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// Frame says how one bucket divides time. With the traits of its kind it decides what that means
// for the plan. Lengths are microseconds, at least 1.
type Frame struct {
	*algorithms.Traits
	Window   int64
	Cell     int64               // length of a cell; see algorithms.CellLength
	Calendar algorithms.Calendar // where cells begin instead; nil: every Cell
	// Assigned says that nodes tell Envoys to admit with rights of a token_bucket, for a cell and
	// more ahead. Tokens in the store serve none of that demand.
	Assigned bool
}

// FrameOf returns the frame of buckets of a kind.
func FrameOf(kind algorithms.Kind, window, cell int64) Frame {
	return Frame{Traits: kind.Traits(), Window: window, Cell: cell}
}

// Cells returns how time is divided into cells.
func (f Frame) Cells() algorithms.Cells {
	return algorithms.Cells{Length: f.Cell, Calendar: f.Calendar}
}

// LongCell is the length in microseconds from which on a cell's tail matters: its last units are
// then scattered over regions that no longer need them, a few in each.
const LongCell = 10 * Second

// Long reports whether the tail of the frame's cells matters.
func (f Frame) Long() bool { return f.Cell >= LongCell }

// Faded returns how many of the used units that count when a cell opens no longer count when it
// ends, from 0 to used. A sliding counter's cell is a whole window, over which the window before
// fades out completely. A log's units are assumed to be spread evenly over the window before, so
// the part that fades is the cell's part of the window, in parts per million rounded down.
func (f Frame) Faded(used quantity.Units) quantity.Units {
	switch {
	case !f.Sliding:
		return 0
	case f.WholeEntries:
		return min(Part(used, quantity.PPM(f.Cell*PPM/f.Window)), used)
	}
	return used
}

// Roll returns the state that a store would show in a later cell if no request came in between, as
// far as an older state tells. It keeps a bucket's level, because the plan adds the refill itself.
// It assumes that this region's share of the cell after next is its entitlement.
func (f Frame) Roll(seen algorithms.State, cell quantity.Cell,
	entitlement quantity.Units) algorithms.State {
	if cell <= seen.Cell {
		return seen
	}
	next := algorithms.State{Cell: cell, Entitlement: entitlement, Share: entitlement,
		NextShare: entitlement, Shut: seen.Shut}
	if cell == seen.Cell+1 {
		next.Share = seen.NextShare
	}
	if f.Bucket {
		next.Used, next.Free = seen.Used, seen.Free
		return next
	}
	if f.Sliding && cell == seen.Cell+1 {
		next.Used = seen.Used - seen.Fading
		next.Fading = f.Faded(next.Used)
	}
	next.Free = max(next.Share-next.Used, 0)
	return next
}

// Outlook returns what a region expects of a cell at a store time if callers ask for rate
// milliunits a second. It also returns the microseconds until the cell opens, 0 if it is open. s is
// the state of the cell that is open at that time; cell is that one or the next.
//
// For the next cell of a sliding kind, what counts when it opens is what counts now, less what
// fades and plus what comes until then, but no more than can be admitted.
func (f Frame) Outlook(s algorithms.State, cell quantity.Cell, at quantity.StoreTime,
	rate quantity.MilliRate) (o Outlook, opens int64) {
	if f.Bucket {
		o = Outlook{Rate: rate, Ahead: f.Window, Steady: true, Stock: s.Free}
		if f.Assigned {
			o.Stock = 0
		}
		return o, max(f.Cells().Opens(cell).Sub(at), 0)
	}
	cells := f.Cells()
	open := cells.At(at)
	o = Outlook{Used: s.Used, Fading: s.Fading, Rate: rate,
		Ahead: cells.Opens(open + 1).Sub(at)}
	if cell <= open {
		return o, 0
	}
	next := Outlook{Rate: rate, Ahead: f.Cell}
	if f.Sliding {
		comes := o.Used - o.Fading + Over(rate, o.Ahead)
		next.Used = max(min(comes, max(o.Used, s.Share)), 0)
		next.Fading = f.Faded(next.Used)
	}
	return next, cells.Opens(cell).Sub(at)
}

// PeerNeeds returns the most units that a peer will need of a cell, by its hint: the total that it
// expects of its hint's own cell, and its demand in milliunits a second. For a sliding kind the
// total holds for the next cell too. same reports whether the hint is about this cell. Of capped
// classes (Outlook.Capped) it needs room at most.
func (f Frame) PeerNeeds(total quantity.Units, rate, capped quantity.MilliRate, room quantity.Units, same bool) quantity.Units {
	switch {
	case f.Bucket:
		return Over(rate, f.Window)
	case same || f.Sliding:
		return total
	}
	return Over(rate, f.Cell) + min(Over(capped, f.Cell), room)
}
