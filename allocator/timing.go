package allocator

import "github.com/quotad/quotad/quantity"

// Interval is the time between ticks, in microseconds.
const Interval = Second / 5

// MaxRetry is the longest time, in microseconds, for which a lender with nothing to give can ask
// not to be asked. So a lender that lies cannot keep a borrower away for longer.
const MaxRetry = Second

// Grace returns the time within which a region could get back rights that it has just lent: a round
// trip to the farthest peer, and a tick until it asks. Both are microseconds.
func Grace(roundTrip int64) int64 { return roundTrip + Interval }

// Patience returns how long waiting requests wait for rights that have been asked for: two round
// trips to the farthest peer, in microseconds. So one ask may be lost or bring nothing.
func Patience(roundTrip int64) int64 { return 2 * roundTrip }

// AskWithin returns how far ahead a region must ask for what it will lack of a cell that opens in
// opens microseconds (0: it is open). That is two round trips and a tick, so that it can ask twice.
// For a cell that is not open yet it is one tick more, because only ticks look ahead at such a
// cell, and the result counts from the cell's opening. All are microseconds, at least 0.
func AskWithin(roundTrip, opens int64) int64 {
	t := 2*roundTrip + Interval
	if opens > 0 {
		t = max(t+Interval-opens, 0)
	}
	return t
}

// Lead returns how long before a cell opens a region asks for its rights, in microseconds. It asks
// late, because quota already lent for the next cell stays lent during a partition, but early
// enough to ask twice. A kind that promises turns ahead plans turns in the next cell with the
// rights it already has of that cell, so for that kind a region asks a whole cell ahead. Of
// Assigned rights it tells Envoys for some seconds ahead.
func (f Frame) Lead(roundTrip int64) int64 {
	lead := 2 * Grace(roundTrip)
	if f.PromisesAhead {
		return max(lead, f.Cell)
	}
	if f.Assigned {
		return max(lead, assignedLead)
	}
	return lead
}

// assignedLead is how long before a cell opens rights of it are asked for that Envoys are told of.
// They are told some 4 s before, and what is asked for must have come by then.
const assignedLead = 7 * Second

// Pause returns the time after which it may help to ask the same lender again, where use fades or a
// bucket fills: a fiftieth of the window, from a tenth of a tick to a tick, in microseconds.
func (f Frame) Pause() int64 { return min(max(f.Window/50, Interval/10), Interval) }

// LongPause returns the time between asks of a lender that will have nothing more to spare after a
// Pause: a tenth of the window, from a Pause to MaxRetry, in microseconds.
func (f Frame) LongPause() int64 { return max(min(f.Window/10, MaxRetry), f.Pause()) }

// Emptied describes a lender that has just given all it would of a cell.
type Emptied struct {
	Limit   quantity.Units
	Unseen  bool    // the lender does not know what its region expects of the cell
	Outlook Outlook // what its region expects of the cell; not set if Unseen
	Left    int64   // microseconds until the cell ends
	Keeps   bool    // the lender has kept units for itself
}

// RetryAfter returns when a lender that has just given all it would may have more to give, in
// microseconds from now, at most MaxRetry:
//
//   - of a sliding kind, when a quantum more has faded than its region needs;
//   - of a bucket, after a part of the window, because the bucket refills;
//   - of a long cell, at the next tick, because the units of its tail come free one by one;
//   - of any other cell, when it ends. If the lender has kept units for itself, after a third of
//     that time: its region may turn out not to need them.
func (f Frame) RetryAfter(e Emptied) int64 {
	switch {
	case f.Sliding && e.Unseen:
		return f.LongPause()
	case f.Sliding:
		return max(FadesIn(e.Outlook, Quantum(e.Limit), f.LongPause()), f.Pause())
	case f.Bucket:
		return f.Pause()
	case f.Long():
		return Interval
	}
	left := e.Left
	if e.Keeps {
		left /= 3
	}
	return min(max(left, Interval/2), MaxRetry)
}

const (
	// minHintEvery and maxHintEvery bound HintEvery, in microseconds. The maximum is some ticks
	// less than the shortest HintLife, so that a node's hint is not forgotten before its next.
	minHintEvery = 2 * Second
	maxHintEvery = 9 * Second / 2
)

// HintEvery returns how often a node repeats an unchanged hint about a bucket: every half of a
// cell, from 2 s to 4.5 s, in microseconds.
func HintEvery(cell int64) int64 { return min(max(cell/2, minHintEvery), maxHintEvery) }

// HintLife returns how long a hint about a bucket with such cells is believed: two and a half times
// HintEvery, so that one hint may be lost. That is 5 s to 11.25 s, in microseconds.
func HintLife(cell int64) int64 { return 5 * HintEvery(cell) / 2 }
