package algorithms

// MaxUnits is the largest amount, limit or time a script computes with: twice it still is an exact double.
const MaxUnits = int64(1) << 51

// MaxClockStep is the largest difference between a node's clock and its store's that is believed, in microseconds.
// Beyond it a script changes nothing.
const MaxClockStep = int64(3600 * second)

// KeySlack is how much longer than its use, in microseconds, a key stays in the store: a bucket's hash longer than
// anything in it weighs, a receipt longer than it can be refunded. Keys end at a store time, not after one: while the
// store's time is held by its mark, ahead of the clock, they are there until the clock has come so far. A clock that is
// ahead for a moment in which no script runs, and then right, may end them too early; the mark has not seen it. A bucket
// that ended so was deleted, and is noticed as one.
const KeySlack = int64(second)

const second = 1_000_000

// Terms are what a script must know of a bucket. Times are microseconds.
type Terms struct {
	Kind        Kind
	Window      int64 // W, at least 1
	Cell        int64 // length of a cell; see CellLength
	Tick        int64 // what sliding_window_counter and the buckets count time in; see Tick
	Entitlement int64 // F of this region, units in a window
	Burst       int64 // C of this region: tokens a token_bucket holds, units a leaky_bucket lets wait; else 0
	ClockMargin int64 // how much longer the sliding kinds keep what was lent, for clocks apart
	Recovered   bool  // after a loss the bucket is restored (Restore); else cells that it may concern stay closed
}

// Recovers says whether what a lost store knew of a bucket is worth recovering: of windows longer than a minute. The
// others' cells are over before it could matter.
func Recovers(k Kind, window int64) bool { return !k.Bucket() && window > 60*second }

// ClockMargin is the difference of regions' clocks up to which the sliding kinds are exact in real time.
const ClockMargin = second / 10

const (
	slice       = second // cell of token_bucket, and of leaky_bucket the least
	mostSlices  = 10     // in a cell of leaky_bucket
	mostLogs    = 10     // cells in a window of the log
	fewestTicks = 1000   // in a window, where a tick is longer than a microsecond
)

// CellLength returns the length of a cell: the window itself for fixed_window and sliding_window_counter, a second for
// token_bucket. A leaky_bucket's are a fifth of the window in whole seconds, at least one and at most ten: turns beyond the
// next cell are promised at the entitlement's rate, and what is lent to a queue that reaches further is of no use to it.
// The log's cells are a second or a tenth of the window, whichever is longer, but never longer than the
// window: a unit lent in one is missing from the lender for the rest of it and a window more.
func CellLength(k Kind, window int64) int64 {
	switch {
	case k == TokenBucket:
		return slice
	case k == LeakyBucket:
		return min(max(window/(5*slice), 1), mostSlices) * slice
	case k == SlidingWindowLog:
		cells := min(max(window/second, 1), mostLogs)
		return (window + cells - 1) / cells
	}
	return window
}

// Tick returns what an algorithm counts time in, so that its products of units and time stay exact: the least power of
// ten, in microseconds, with 2 x units x ticks in the window < 2^52. The units are the limit, or the burst where that
// is more. It returns 0 where such a tick were longer than a second or a thousandth of the window: then the limit is
// too large for its window.
func Tick(k Kind, units, window int64) int64 {
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
		case units < MaxUnits/((longest+tick-1)/tick):
			return tick
		}
	}
	return 0
}

// ticks returns the length of the window in ticks, rounded up: whatever is rounded is rounded against the caller.
func (t Terms) ticks() int64 { return (t.Window + t.Tick - 1) / t.Tick }

// Weighs returns the store time until which rows of a cell weigh: until its end; the sliding kinds keep what was lent
// for as long as use that it allowed may count elsewhere, and for the clock guard.
func (t Terms) Weighs(cell int64) int64 {
	switch t.Kind {
	case SlidingWindowCounter:
		return (cell+2)*t.Window + t.ClockMargin + 2*(t.Tick-1) // twice a tick is rounded
	case SlidingWindowLog:
		return (cell+1)*t.Cell + t.Window + t.ClockMargin
	}
	return (cell + 1) * t.Cell
}

// CountsSince returns the earliest store time whose use may still count at a store time.
func (t Terms) CountsSince(at int64) int64 {
	switch {
	case t.Kind == SlidingWindowCounter:
		return (CellAt(at, t.Cell) - 1) * t.Cell
	case t.Kind == SlidingWindowLog:
		return at - t.Window
	case t.Kind.Bucket():
		return at - t.fillTime() - t.Cell
	}
	return CellAt(at, t.Cell) * t.Cell
}

// fillTime returns how long an empty bucket takes to fill at the entitlement, 0 for the other kinds.
func (t Terms) fillTime() int64 {
	if !t.Kind.Bucket() || t.Entitlement == 0 {
		return 0
	}
	return min(ceilDiv(t.Burst*t.ticks(), t.Entitlement), MaxUnits/t.Tick) * t.Tick
}

// Useful returns until when a bucket last written in a cell must be remembered.
func (t Terms) Useful(cell int64) int64 { return t.Weighs(cell+1) + t.fillTime() }

// floorDiv and ceilDiv divide by b > 0 and round down and up; a may be negative.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }
