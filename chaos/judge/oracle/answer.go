package oracle

import (
	"fmt"
	"time"
)

// Outcome is what the caller learned of one request.
type Outcome int

const (
	// Unknown is a request without an answer: a timeout or a lost reply. The ceiling counts it as
	// admitted.
	Unknown Outcome = iota
	// Admitted is a request that was let through.
	Admitted
	// Denied is a request that was refused, for whatever reason.
	Denied
)

// String names the outcome in one word.
func (o Outcome) String() string {
	switch o {
	case Unknown:
		return "unknown"
	case Admitted:
		return "admitted"
	case Denied:
		return "denied"
	default:
		return fmt.Sprintf("outcome(%d)", int(o))
	}
}

// MaxCost is the largest cost of one request that the judge accepts, in units. quotad's own numbers
// stay below it.
const MaxCost = 1 << 52

// Answer is one request and its answer, as its caller saw it.
type Answer struct {
	// Bucket is the limit applied to one key; each bucket is judged by itself.
	Bucket string
	// Region and Node say who answered. A node that restarts and numbers its decisions from the
	// beginning needs another name here.
	Region, Node string
	// Sequence is the node's number of this decision. A node never uses a number twice.
	Sequence uint64
	// Cost is the requested number of units, 0 to MaxCost.
	Cost int64
	// Outcome is what the caller learned.
	Outcome Outcome
	// Cell is the cell that the decision claims, and At its store time in microseconds since 1970.
	// Both are ignored if the outcome is Unknown, as is Sequence.
	Cell, At int64
	// Sent is when the request left. Seen is when its answer arrived, or when its caller stopped
	// waiting. Both are times of the judge's own clock.
	Sent, Seen time.Time
	// Entitlement is what the region claims as its fixed split, and Share what it claims to hold in
	// the cell, in units. They are reported, not judged.
	Entitlement, Share int64
	// Degraded is set when the decision was taken while a region of the limit
	// was out of touch. It is reported, not judged.
	Degraded bool
	// Part is the part of Share, in millionths, that the request's class may use, all use counted.
	// 0: all, or the caller knows of something that makes that untrue, such as units that were
	// given back.
	Part int64
	// Elsewhere says that it was decided without the region's store, which counts it later or
	// never.
	Elsewhere bool
}

// DefaultSettle is used if Limit.Settle is 0.
const DefaultSettle = 10 * time.Second

// Limit is what the history is judged against.
type Limit struct {
	// Limit is the number of units that all regions together may admit in a window. For buckets it
	// is the number of units by which the bucket is refilled or drained in a window. 1 to MaxCost.
	Limit int64
	// Burst is how many units a token_bucket holds, or how many may wait in a leaky_bucket, 1 to
	// MaxCost; for the other algorithms 0.
	Burst int64
	// Window is the window of the limit, a whole number of microseconds.
	Window time.Duration
	// Assigned says that Envoys are assigned parts of a token_bucket: its cells are ten seconds
	// then.
	Assigned bool
	// Calendar divides time into the windows of a fixed_window in place of Window, which is then
	// about their length. nil: none.
	Calendar *Calendar
	// Rates returns how fast a bucket is refilled or drained, from when on, in the order of time,
	// where that changes in the run: what comes before the first is Limit. It is asked whenever the
	// history is judged. nil: Limit at all times.
	Rates func() []Rate
	// Algorithm is the limit's algorithm as the policy names it: fixed_window,
	// sliding_window_counter, sliding_window_log, token_bucket or leaky_bucket.
	Algorithm string
	// ClockSlack is how far a region's store clock may be from the judge's.
	ClockSlack time.Duration
	// Settle is how long after its store time an answer may be recorded and still be replayed in
	// order. It should exceed the callers' timeout by twice ClockSlack. An offline history that is
	// not ordered by Seen needs the length of the history. 0: DefaultSettle.
	Settle time.Duration
}

// Rate says that a bucket is refilled or drained with so many units in a window, from a store time on
// (µs since 1970), and which burst it has then; 0: that of before. A bucket whose burst is lowered has
// as much left as it had, and no more than the burst.
type Rate struct{ From, Limit, Burst int64 }

// CellOf returns the cell that a decision with the store time at (µs since 1970) must claim. The
// limit must be valid.
func (l Limit) CellOf(at int64) int64 { return algorithms[l.Algorithm].cellOf(l, at) }

// Validate returns an error that says what is wrong with the limit, or nil.
func (l Limit) Validate() error {
	switch {
	case l.Limit < 1 || l.Limit > MaxCost:
		return fmt.Errorf("oracle: a limit of %d units cannot be judged: give 1 to %d", l.Limit,
			int64(MaxCost))
	case l.Window < time.Microsecond || l.Window%time.Microsecond != 0:
		return fmt.Errorf("oracle: a window of %v cannot be judged: store times are whole microseconds, give a multiple of 1µs", l.Window)
	case l.ClockSlack < 0:
		return fmt.Errorf("oracle: a clock slack of %v is negative: give how far a store clock may be from the judge's", l.ClockSlack)
	case l.Settle < 0:
		return fmt.Errorf("oracle: a settle time of %v is negative: give 0 for %v, or more than the callers' timeout", l.Settle, DefaultSettle)
	}
	if l.Calendar != nil {
		if err := l.Calendar.validate(); err != nil {
			return err
		}
	}
	rule, known := algorithms[l.Algorithm]
	switch {
	case l.Calendar != nil && l.Algorithm != "fixed_window":
		return fmt.Errorf("oracle: a %s does not count by the calendar: give a window alone",
			l.Algorithm)
	case !known:
		return fmt.Errorf("oracle: there is no check for algorithm %q: it judges %s", l.Algorithm,
			knownAlgorithms())
	case rule.burst && (l.Burst < 1 || l.Burst > MaxCost):
		return fmt.Errorf("oracle: a %s with a burst of %d units cannot be judged: give 1 to %d",
			l.Algorithm, l.Burst, int64(MaxCost))
	case !rule.burst && l.Burst != 0:
		return fmt.Errorf("oracle: a burst of %d units means nothing to a %s: give 0, or judge a bucket", l.Burst, l.Algorithm)
	}
	return nil
}
