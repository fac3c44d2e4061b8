package door

import (
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// alwaysIn is how many calls are let in however slowly calls leave. With fewer in the node its
	// pace says nothing: each leaves when the store has answered it.
	alwaysIn = 32
	// crowdParts is the part of a caller's time that calls ahead may take: 1/crowdParts of it.
	crowdParts = 2.5
	// In a storm, calls that would be too late wait outside, at most maxOutside: each costs twice
	// what it costs to refuse it at once. It is one for stormLasts after stormParts times as many were
	// refused as answered: then callers come again as soon as they are refused.
	maxOutside = 256
	stormParts = 8
	stormLasts = time.Second
	// calmParts is the part of its time that a call may have waited outside while calls are let in
	// in the order in which they came: 1/calmParts. If the first has waited longer, more come than
	// can be answered, and the newest is let in: it has most of its time left.
	calmParts = 3
	// paceSpan is how long calls that leave are counted for one measurement of the pace. Those before
	// weigh paceKept together: a pause of some milliseconds must not have many calls refused.
	paceSpan = 5 * time.Millisecond
	paceKept = 0.9
	// Callers who wait for patience or longer are let in by the greater of the pace and of what was
	// answered within about evenly. A storm shows in what was answered and refused within about lately.
	patience = 250 * time.Millisecond
	evenly   = 500 * time.Millisecond
	lately   = 200 * time.Millisecond
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
// of it as have their turns first. A caller who names no time is never refused here.
//
// Callers who come again as soon as they are refused may take all the time that decisions need. In
// such a storm, calls wait outside, before their messages are read, until they are let in or their
// callers are about to give up. Callers take turns there. Safe for concurrent use.
type Crowd struct {
	refused error
	shed    func()

	mu      sync.Mutex
	in      int
	outside int
	callers map[string]*visitor // those that have calls in or outside
	lines   []*visitor          // those that have calls outside, in the order of their turns

	pace     float64   // calls answered a second; 0: as many as come
	paced    time.Time // when pace was last measured or doubled
	since    time.Time // when counting began; zero: too few were in meanwhile
	answered int       // since then
	turned   int       // calls refused at once since then

	even, answering, turning rate      // calls answered, evenly and lately, and refused at once, lately
	storm                    time.Time // until when there is one
}

// rate is how many calls come or go a second.
type rate float64

// takes takes in how many did within a time. Those within about the time of memory weigh most.
func (r *rate) takes(n int, within, memory time.Duration) {
	*r += (rate(float64(n)/within.Seconds()) - *r) * rate(1-math.Exp(-float64(within)/float64(memory)))
}

// visitor is a caller.
type visitor struct {
	in   int
	line []*guest // outside, in the order in which they came; some have gone
	gone int      // of these
}

// NewCrowd returns an empty Crowd. refused is the error of each call that it refuses, and shed
// counts them.
func NewCrowd(refused error, shed func()) *Crowd {
	return &Crowd{refused: refused, shed: shed, callers: map[string]*visitor{}}
}

// place is where a call is.
type place int

const (
	refused place = iota
	isIn
	isOutside
	hasLeft
)

// comes lets a call in, has it wait outside, or refuses it.
func (c *Crowd) comes(g *guest, now time.Time) place {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.callers[g.caller]
	switch {
	case c.fits(v, now, g.ends.Sub(now)):
		c.letIn(c.visitor(g.caller), g, now)
	case c.outside >= maxOutside || now.After(c.storm):
		c.turned++
		g.place = refused
	default:
		v = c.visitor(g.caller)
		if len(v.line) == v.gone {
			c.lines = append(c.lines, v)
		}
		v.line = append(v.line, g)
		c.outside++
		g.place, g.turn = isOutside, make(chan struct{})
	}
	return g.place
}

// visitor returns a caller, and makes it if it has no calls yet.
func (c *Crowd) visitor(caller string) *visitor {
	v := c.callers[caller]
	if v == nil {
		v = &visitor{}
		c.callers[caller] = v
	}
	return v
}

// fits says whether a call of a caller has time for those ahead of it.
func (c *Crowd) fits(v *visitor, now time.Time, waits time.Duration) bool {
	own, callers := 0, len(c.callers)
	if v == nil {
		callers++
	} else {
		own = v.in
	}
	return c.in < alwaysIn || !c.late(min((own+1)*callers, c.in), now, waits)
}

func (c *Crowd) letIn(v *visitor, g *guest, now time.Time) {
	g.place = isIn
	c.in++
	v.in++
	if c.in >= alwaysIn/2 && c.since.IsZero() {
		c.since, c.answered, c.turned = now, 0, 0
	}
}

// late says whether so many calls take too long at the last pace.
func (c *Crowd) late(ahead int, now time.Time, waits time.Duration) bool {
	for c.pace > 0 && now.Sub(c.paced) > paceDoubles {
		if c.pace, c.paced = 2*c.pace, c.paced.Add(paceDoubles); c.pace > 1e9 {
			c.pace = 0
		}
	}
	pace := c.pace
	if waits >= patience && pace > 0 {
		pace = max(pace, float64(c.even))
	}
	return pace > 0 && float64(ahead) > pace*waits.Seconds()/crowdParts
}

// leaves lets a call out, if it has not left, and in its place those in that wait. answered says
// that it was, in time.
func (c *Crowd) leaves(g *guest, now time.Time, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.place != isIn {
		return
	}
	g.place = hasLeft
	c.in--
	v := c.callers[g.caller]
	v.in--
	c.forget(g.caller, v)
	if answered {
		c.answered++
	}
	c.measure(now)
	for c.outside > 0 && c.next(now) {
	}
}

// measure takes in that a call has left.
func (c *Crowd) measure(now time.Time) {
	switch counted := now.Sub(c.since); {
	case c.since.IsZero():
	case c.in < alwaysIn/2:
		c.since = time.Time{}
	case counted >= paceSpan:
		pace := float64(c.answered) / counted.Seconds()
		if c.pace > 0 {
			pace += (c.pace - pace) * paceKept
		}
		c.pace = max(pace, 1)
		c.even.takes(c.answered, counted, evenly)
		c.answering.takes(c.answered, counted, lately)
		c.turning.takes(c.turned, counted, lately)
		if c.turning > stormParts*c.answering {
			c.storm = now.Add(stormLasts)
		}
		c.paced, c.since, c.answered, c.turned = now, now, 0, 0
	}
}

// forget forgets a caller without calls.
func (c *Crowd) forget(caller string, v *visitor) {
	if v.in == 0 && len(v.line) == v.gone {
		delete(c.callers, caller)
	}
}

// next lets one in of the calls that wait, if one has time enough. Callers are asked by turns.
func (c *Crowd) next(now time.Time) bool {
	for range len(c.lines) {
		v := c.lines[0]
		c.lines = append(c.lines[1:], v)
		g := v.best(now)
		if !c.fits(v, now, g.ends.Sub(now)) {
			continue
		}
		c.steps(v, g)
		c.letIn(v, g, now)
		close(g.turn)
		return true
	}
	return false
}

// best returns the call of a caller that is to be let in next.
func (v *visitor) best(now time.Time) *guest {
	for v.line[0].place != isOutside {
		v.line = v.line[1:]
		v.gone--
	}
	if first := v.line[0]; now.Sub(first.came) <= first.until.Sub(first.came)/calmParts {
		return first
	}
	for v.line[len(v.line)-1].place != isOutside {
		v.line = v.line[:len(v.line)-1]
		v.gone--
	}
	return v.line[len(v.line)-1]
}

// steps takes a call out of those that wait outside.
func (c *Crowd) steps(v *visitor, g *guest) {
	g.place = hasLeft
	c.outside--
	v.gone++
	switch {
	case len(v.line) == v.gone:
		v.line, v.gone = nil, 0
		c.lines = slices.DeleteFunc(c.lines, func(one *visitor) bool { return one == v })
	case v.gone > len(v.line)/2:
		v.line = slices.DeleteFunc(v.line, func(one *guest) bool { return one.place != isOutside })
		v.gone = 0
	}
}

// givesUp refuses a call that waits outside. If it was let in meanwhile it returns false.
func (c *Crowd) givesUp(g *guest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.place != isOutside {
		return false
	}
	v := c.callers[g.caller]
	c.steps(v, g)
	c.forget(g.caller, v)
	return true
}
