package held

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/quantity"
)

// turnsWithin bounds for how long turns are given beyond the time after which a request would fit
// alone: who was given one may never come, and one caller may have been given many.
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
}

// turns remembers which units that come free were told to a caller, so that the next one is told of
// those that come after them. It is one time, however many ask: a turn that has passed counts no
// more, whether its caller came or not.
type turns struct{ told atomic.Int64 } // the last turn, as a store time

// Turn returns after which time a denied request has its turn: when it would fit alone, but not
// before its units have come free after those of the last turn. If that is later than turns are
// given, they begin anew, among those given before. With take, the turn is given to the request.
func (m *Memory) Turn(c Coming, take bool) time.Duration {
	for {
		last := m.turns.told.Load()
		turn := c.turn(quantity.StoreTime(last))
		if !take || m.turns.told.CompareAndSwap(last, int64(turn)) {
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

// follows returns when the units have come free after a turn, of which so many come in a time.
func (c Coming) follows(turn quantity.StoreTime, units quantity.Units, in time.Duration) quantity.StoreTime {
	if units <= 0 {
		return turn
	}
	us := math.Ceil(float64(c.Cost) / float64(units) * float64(in.Microseconds()))
	return turn.Add(int64(min(us, math.MaxInt64/4)))
}
