package door

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// alwaysIn is how many calls are let in however slowly calls leave. With fewer in the node its
	// pace says nothing: each leaves when the store has answered it.
	alwaysIn = 32
	// crowdParts is the part of a caller's time that calls ahead may take: 1/crowdParts of it. At
	// twice what a node could decide, a half had twice as many answers come too late for callers who
	// wait for 20 or 50 ms, and a third had a sixth fewer in time.
	crowdParts = 2.5
	// paceSpan is how long calls that leave are counted for one measurement of the pace. Those before
	// weigh paceKept together: a pause of some milliseconds must not have many calls refused.
	paceSpan = 5 * time.Millisecond
	paceKept = 0.9
	// paceDoubles is how often a pace is doubled that nothing confirms.
	paceDoubles = 100 * time.Millisecond
)

// Crowd refuses calls that would be too late for their callers. It does so with their headers,
// before anything else is done for them. Where more calls come than a node can decide, it would
// otherwise spend its time on calls whose callers have gone when they are answered: calls also wait
// in sockets and for a processor, and the node cannot see for how long.
//
// A call is refused if those ahead of it would take more than two fifths of its caller's time, at the
// pace at which calls were last answered while many were in. Of other callers only so many are ahead
// of it as have their turns first. A caller who names no time is never refused here. Safe for
// concurrent use.
type Crowd struct {
	refused error
	shed    func()

	mu      sync.Mutex
	in      int
	callers map[string]int // calls of each caller that are in, of those that have any

	pace     float64   // calls answered a second; 0: as many as come
	paced    time.Time // when pace was last measured or doubled
	since    time.Time // when counting began; zero: too few were in meanwhile
	answered int       // since then
}

// NewCrowd returns an empty Crowd. refused is the error of each call that it refuses, and shed
// counts them.
func NewCrowd(refused error, shed func()) *Crowd {
	return &Crowd{refused: refused, shed: shed, callers: map[string]int{}}
}

// enters lets in a call of a caller who waits for its answer for so long, or says that it is
// refused.
func (c *Crowd) enters(caller string, now time.Time, waits time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, callers := c.callers[caller], len(c.callers)
	if own == 0 {
		callers++
	}
	if c.in >= alwaysIn && c.late(min((own+1)*callers, c.in), now, waits) {
		return false
	}
	c.in++
	c.callers[caller] = own + 1
	if c.in >= alwaysIn/2 && c.since.IsZero() {
		c.since, c.answered = now, 0
	}
	return true
}

// late says whether so many calls take too long at the last pace.
func (c *Crowd) late(ahead int, now time.Time, waits time.Duration) bool {
	for c.pace > 0 && now.Sub(c.paced) > paceDoubles {
		if c.pace, c.paced = 2*c.pace, c.paced.Add(paceDoubles); c.pace > 1e9 {
			c.pace = 0
		}
	}
	return c.pace > 0 && float64(ahead) > c.pace*waits.Seconds()/crowdParts
}

// leaves lets a call out. answered says that it was, in time.
func (c *Crowd) leaves(caller string, now time.Time, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in--
	if c.callers[caller]--; c.callers[caller] == 0 {
		delete(c.callers, caller)
	}
	if answered {
		c.answered++
	}
	switch counted := now.Sub(c.since); {
	case c.since.IsZero():
	case c.in < alwaysIn/2:
		c.since = time.Time{}
	case counted >= paceSpan:
		pace := float64(c.answered) / counted.Seconds()
		if c.pace > 0 {
			pace += (c.pace - pace) * paceKept
		}
		c.pace, c.paced, c.since, c.answered = max(pace, 1), now, now, 0
	}
}

// guest is a call that was let in.
type guest struct {
	crowd  *Crowd // nil: the call needs none
	caller string
	left   atomic.Bool
	stop   func() bool // stops waiting for the end of a call whose handler has not begun
}

// neverBegins is how long after its end a call's handler may begin.
const neverBegins = time.Second

// enter lets a call in, or returns the error with which it is refused. A call of which gRPC never
// begins the handler leaves some time after its end.
func (g *guest) enter(c *Crowd, ctx context.Context, now time.Time) error {
	ends, known := ctx.Deadline()
	if !known || !ends.After(now) { // gRPC answers the latter at once
		return nil
	}
	if on := connOf(ctx); on != nil {
		g.caller = on.remote.host
	}
	if !c.enters(g.caller, now, ends.Sub(now)) {
		c.shed()
		return c.refused
	}
	g.crowd = c
	g.stop = context.AfterFunc(ctx, func() {
		time.AfterFunc(neverBegins, func() { g.leave(false) })
	})
	return nil
}

// begins says that the call's handler has begun.
func (g *guest) begins() {
	if g.crowd != nil {
		g.stop()
	}
}

// leave lets the call out, once. answered says that it was, in time.
func (g *guest) leave(answered bool) {
	if g.crowd != nil && !g.left.Swap(true) {
		g.crowd.leaves(g.caller, time.Now(), answered)
	}
}
