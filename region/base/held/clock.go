package held

import (
	"sync/atomic"
	"time"
)

// Clock measures the time since it was made, for what ends by itself. It goes on while the machine is
// suspended, when the monotonic clock stands still: where the wall clock went ahead by more than the
// monotonic one, that counts as passed. So it does where the wall clock is set ahead, and then what
// is held ends too soon, which costs a question to the store and admits nothing. Setting the wall
// clock back changes nothing. What neither clock shows, as of a virtual machine that is stopped and
// started with its clocks, it cannot know.
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

// ClockOf returns a clock by two others, of which read returns the time that each shows to have passed
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
