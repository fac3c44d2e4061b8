package held

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/quantity"
)

// turnsWithin bounds how far ahead turns are given, counted from when a request would fit alone. A
// caller may never come for its turn, and one caller may have been given many.
const turnsWithin = time.Hour

// Coming is what is known of units that come free one by one, when a request is denied.
type Coming struct {
	Now    quantity.StoreTime
	Alone  time.Duration // after which the request fits if no other comes
	Cost   quantity.Units
	Rate   quantity.Units // units that come free in a Window
	Window time.Duration
	Within time.Duration // within which turns are given
	// After some time units may be here that other regions lend: AtOnce, and More in each Window. 0:
	// none.
	After        time.Duration
	AtOnce, More quantity.Units
	// Lower says that the request may use only a part of the bucket's rights. Such requests take
	// turns among themselves.
	Lower bool
}

// turns remembers the last turn that was given: callers are told, one after the other, of units
// that come free. It is one time, however many ask. A turn that has passed counts no more, whether
// its caller came or not.
type turns struct{ told atomic.Int64 } // the last turn, as a store time

// Turn returns how long a denied request waits for its turn. That is until it would fit alone, and
// until its units have come free behind those of the last turn. If that is further ahead than turns
// are given, turns begin anew. With take, the request gets the turn.
func (m *Memory) Turn(c Coming, take bool) time.Duration {
	turns := &m.turns
	if c.Lower {
		turns = &m.lowerTurns
	}
	for {
		last := turns.told.Load()
		turn := c.turn(quantity.StoreTime(last))
		if !take || turns.told.CompareAndSwap(last, int64(turn)) {
			return time.Duration(turn.Sub(c.Now)) * time.Microsecond
		}
	}
}

// turn returns the turn after the last one.
func (c Coming) turn(last quantity.StoreTime) quantity.StoreTime {
	first, end := c.in(c.Alone), c.in(min(c.Within, c.Alone+turnsWithin))
	next := c.follows(last, c.Rate, c.Window)
	if lent := c.in(c.After); c.AtOnce > 0 || c.More > 0 {
		first = min(first, lent)
		from, spread := max(last, lent), c.After/4
		next = min(next, c.follows(from, c.Rate+c.More, c.Window))
		if c.AtOnce > 0 && from < lent.Add(spread.Microseconds()) {
			next = min(next, c.follows(from, c.AtOnce, spread))
		}
	}
	// If the last one has passed, what its caller took, if it came, is gone already. It may also be of
	// another store, or was given when other rights were here.
	if last <= c.Now || next > max(end, first) {
		return first
	}
	return max(first, next)
}

func (c Coming) in(d time.Duration) quantity.StoreTime { return c.Now.Add(d.Microseconds()) }

// follows returns when the cost has come free after a turn, if so many units come free in a time.
func (c Coming) follows(turn quantity.StoreTime, units quantity.Units, in time.Duration) quantity.StoreTime {
	if units <= 0 {
		return turn
	}
	us := math.Ceil(float64(c.Cost) / float64(units) * float64(in.Microseconds()))
	return turn.Add(int64(min(us, math.MaxInt64/4)))
}
