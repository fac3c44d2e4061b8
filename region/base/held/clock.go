package held

import (
	"sync/atomic"
	"time"
)

// Clock measures the time since it was made, for what ends by itself. It goes on while the machine
// is suspended, when the monotonic clock stands still: if the wall clock has gone ahead of the
// monotonic one, the difference counts as passed.
//
// It also counts a wall clock that is set ahead. What is held then ends too soon, which costs a
// question to the store and admits nothing. A wall clock that is set back changes nothing. The
// clock cannot notice a stop that neither clock shows, such as that of a virtual machine that is
// stopped with its clocks.
//
// Safe for concurrent use. It never goes back.
type Clock struct {
	begun time.Time
	unix  int64                                  // begun by the wall clock, in nanoseconds since 1970
	read  func() (monotonic, wall time.Duration) // nil: this machine's
	// In nanoseconds: by how much the wall clock has gone ahead of the monotonic one, all in all, and
	// by how much it was set back, all in all.
	ahead, setBack atomic.Int64
}

// slack is by how much the wall clock may go back before it counts as set back. Smaller steps are
// noise, of which no sum may count as time that passed. So much of a suspension may be missed.
const slack = time.Millisecond

// NewClock returns a clock by those of this machine.
func NewClock() *Clock {
	begun := time.Now()
	return &Clock{begun: begun, unix: begun.UnixNano()}
}

// ClockOf returns a clock that is made of two others. read returns the time that each of them shows
// since the clock was made. It is for simulated machines.
func ClockOf(read func() (monotonic, wall time.Duration)) *Clock { return &Clock{read: read} }

// Elapsed returns the time since the clock was made.
func (c *Clock) Elapsed() time.Duration {
	added := c.setBack.Load() // first, so that no setting counts twice
	var monotonic, wall time.Duration
	if c.read == nil {
		now := time.Now()
		monotonic, wall = now.Sub(c.begun), time.Duration(now.UnixNano()-c.unix)
	} else {
		monotonic, wall = c.read()
	}
	shows := int64(wall - monotonic)
	for {
		ahead := c.ahead.Load()
		switch {
		case shows+added > ahead:
			if !c.ahead.CompareAndSwap(ahead, shows+added) {
				continue
			}
			return monotonic + time.Duration(shows+added)
		case shows+added < ahead-int64(slack):
			c.setBack.CompareAndSwap(added, ahead-shows)
		}
		return monotonic + time.Duration(ahead)
	}
}
