package algorithms

import "github.com/quotad/quotad/quantity"

// MaxUnits is the largest amount, limit or time that a script computes with. Twice that is still an
// exact double.
const MaxUnits = 1 << 51

// MaxClockStep is the largest difference between a node's clock and its store's that a script
// accepts, in microseconds. Beyond it a script changes nothing.
const MaxClockStep = 3600 * second

// GenerationStep bounds by how much the number of a generation is above the last one that its opener
// knew, where the opener's clock shows no more than that. In milliseconds of a clock, as generations
// are.
const GenerationStep = 1000

// KeySlack is how long a key stays in the store after its last use, in microseconds: a bucket's
// hash after everything in it has stopped weighing, a receipt after it can no longer be refunded.
//
// Keys end at a store time, not after a duration. While the mark holds the store's time ahead of
// its clock, the keys stay until the clock has caught up. The clock may also be ahead for a moment
// in which no script runs, and then be right again. That may end keys too early, and the mark has
// not seen it. A bucket that ended this way counts as deleted, and the caller's ExistsUntil shows
// it.
const KeySlack = second

const second = 1_000_000

// Advance is how long before a window of a fixed_window opens rights of it are lent and credited, in
// microseconds. Nobody asks for them as early.
const Advance = 60 * second

// Terms are what a script must know of a bucket. Times are in microseconds.
type Terms struct {
	Kind        Kind
	Window      int64          // W, at least 1
	Cell        int64          // length of a cell; see CellLength
	Calendar    Calendar       // where cells begin instead; nil: every Cell us since 1970
	Tick        int64          // unit of time of sliding_window_counter and the buckets; see Tick
	Entitlement quantity.Units // F of this region, units in a window
	// C of this region: tokens a token_bucket holds, units that wait in a leaky_bucket; else 0
	Burst quantity.Units
	// how much longer the sliding kinds deduct what was lent, for clocks that differ
	ClockMargin int64
	// After a loss the bucket is restored (Restore). Otherwise the cells that the loss may concern
	// stay closed.
	Recovered bool
}

// Calendar divides time into periods of different lengths, which are the cells of a fixed_window.
// Window and Cell are then the usual length of a period, for whatever needs no exact one. Calendars
// are compared with ==.
type Calendar interface {
	At(t quantity.StoreTime) quantity.Cell
	// Opens returns when a period begins; a later one never begins earlier.
	Opens(period quantity.Cell) quantity.StoreTime
}

// Cells says how time is divided into cells, or into windows.
type Cells struct {
	Length   int64    // of each, in microseconds
	Calendar Calendar // which begins them instead; nil: none
}

// At returns the number of the cell that holds a store time.
func (c Cells) At(t quantity.StoreTime) quantity.Cell {
	if c.Calendar != nil {
		return c.Calendar.At(t)
	}
	return CellAt(t, c.Length)
}

// Opens returns when a cell begins.
func (c Cells) Opens(cell quantity.Cell) quantity.StoreTime {
	if c.Calendar != nil {
		return c.Calendar.Opens(cell)
	}
	return cell.OpensAt(c.Length)
}

// Cells returns how the bucket's time is divided into cells.
func (t Terms) Cells() Cells { return Cells{t.Cell, t.Calendar} }

// Windows returns how the bucket's time is divided into windows.
func (t Terms) Windows() Cells { return Cells{t.Window, t.Calendar} }

// CellAt returns the number of the cell that holds a store time.
func (t Terms) CellAt(at quantity.StoreTime) quantity.Cell { return t.Cells().At(at) }

// Opens returns when a cell begins.
func (t Terms) Opens(cell quantity.Cell) quantity.StoreTime { return t.Cells().Opens(cell) }

// Recovers reports whether a lost bucket is worth recovering: windows longer than a minute are. The
// cells of other limits are over before it could matter.
func Recovers(k Kind, window int64) bool { return !k.Bucket() && window > 60*second }

// ClockMargin is the largest difference of the regions' clocks, in microseconds, up to which the
// sliding kinds are exact in real time.
const ClockMargin = second / 10

const (
	slice       = second // cell of token_bucket, and shortest cell of leaky_bucket
	maxSlices   = 10     // slices in a cell of leaky_bucket
	maxLogs     = 10     // cells in a window of the log
	fewestTicks = 1000   // ticks in a window, if a tick is longer than a microsecond
)

// CellLength returns the length of a cell, in microseconds:
//   - fixed_window and sliding_window_counter: the window itself.
//   - token_bucket: a second.
//   - leaky_bucket: a fifth of the window in whole seconds, at least one and at most ten. Turns
//     beyond the next cell are promised at the entitlement's rate, so a queue that reaches further
//     has no use for borrowed rights there.
//   - sliding_window_log: a second or a tenth of the window, whichever is longer, but never
//     longer than the window. A unit lent in a cell is missing from the lender for the rest of that
//     cell and a window more.
func CellLength(k Kind, window int64) int64 {
	switch {
	case k == TokenBucket:
		return slice
	case k == LeakyBucket:
		return min(max(window/(5*slice), 1), maxSlices) * slice
	case k == SlidingWindowLog:
		cells := min(max(window/second, 1), maxLogs)
		return (window + cells - 1) / cells
	}
	return window
}

// Tick returns the unit of time, in microseconds, in which an algorithm's products of units and
// time stay exact: the least power of ten with 2 x units x ticks in the window < 2^52. units is the
// limit, or the burst if that is more. Tick returns 0 if such a tick would be longer than a second
// or than a thousandth of the window: then the limit is too large for its window.
func Tick(k Kind, units quantity.Units, window int64) int64 {
	if k == FixedWindow || k == SlidingWindowLog {
		return 1
	}
	longest := window
	if k.Bucket() {
		longest = max(window, slice)
	}
	for tick := int64(1); tick <= second; tick *= 10 {
		switch {
		case tick > 1 && window < fewestTicks*tick:
			return 0
		case units < quantity.Units(MaxUnits/((longest+tick-1)/tick)):
			return tick
		}
	}
	return 0
}

// ticks returns the length of the window in ticks, rounded up, because rounding always goes against
// the caller.
func (t Terms) ticks() int64 { return (t.Window + t.Tick - 1) / t.Tick }

// Weighs returns the store time until which rows of a cell weigh. That is the cell's end, except
// for the sliding kinds: they deduct what was lent for as long as use that it allowed may count
// elsewhere, and for the clock margin.
func (t Terms) Weighs(cell quantity.Cell) quantity.StoreTime {
	switch t.Kind {
	case SlidingWindowCounter:
		// two roundings to a tick
		return (cell + 2).OpensAt(t.Window).Add(t.ClockMargin).Add(2 * (t.Tick - 1))
	case SlidingWindowLog:
		return (cell + 1).OpensAt(t.Cell).Add(t.Window).Add(t.ClockMargin)
	}
	return t.Opens(cell + 1)
}

// Over returns the store time from which on nothing weighs that was used, lent or credited by a time:
// the cell of that time is over, and the next one if rows of it may have been moved already.
func (t Terms) Over(at quantity.StoreTime) quantity.StoreTime {
	cell := t.CellAt(at)
	if t.Kind != FixedWindow || t.Opens(cell+1).Sub(at) <= Advance {
		cell++
	}
	return t.Weighs(cell)
}

// CountsSince returns the earliest store time at which use can still count at store time at.
func (t Terms) CountsSince(at quantity.StoreTime) quantity.StoreTime {
	switch {
	case t.Kind == SlidingWindowCounter:
		return (CellAt(at, t.Cell) - 1).OpensAt(t.Cell)
	case t.Kind == SlidingWindowLog:
		return at.Add(-t.Window)
	case t.Kind.Bucket():
		return at.Add(-t.FillTime()).Add(-t.Cell)
	}
	return t.Opens(t.CellAt(at))
}

// FillTime returns how many us an empty bucket takes to fill at the entitlement, 0 for the other
// kinds.
func (t Terms) FillTime() int64 {
	if !t.Kind.Bucket() || t.Entitlement == 0 {
		return 0
	}
	return min(ceilDiv(int64(t.Burst*quantity.Units(t.ticks())), int64(t.Entitlement)),
		MaxUnits/t.Tick) * t.Tick
}

// Useful returns the store time until which a bucket last written in a cell must be remembered.
func (t Terms) Useful(cell quantity.Cell) quantity.StoreTime {
	return t.Weighs(cell + 1).Add(t.FillTime())
}

// floorDiv divides by b > 0 and rounds down, ceilDiv rounds up; a may be negative.
func floorDiv[T ~int64](a T, b int64) T {
	q := a / T(b)
	if a%T(b) < 0 {
		q--
	}
	return q
}

func ceilDiv[T ~int64](a T, b int64) T { return -floorDiv(-a, b) }
