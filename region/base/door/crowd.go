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
	// mostAhead is the most that calls ahead may take of a caller without patience. A node decides no
	// more a second with more calls in it, and they would all be late if it pauses.
	mostAhead = 10 * time.Millisecond
	// In a storm, calls that would be too late wait outside. A storm lasts for stormLasts after
	// stormParts times as many calls were refused as answered: then callers come again as soon as they
	// are refused. A call that waits costs a node some 15 us, twice as much as one that is refused at
	// once. So one call may wait for each outsideEach of its time, which is half a processor, and at
	// most maxOutside in all.
	outsideEach = 33 * time.Microsecond
	maxOutside  = 2048
	stormParts  = 4
	stormLasts  = time.Second
	// paceSpan is how long calls that leave are counted for one measurement of the pace. All
	// measurements before it weigh paceKept together: a pause of some milliseconds must not get many
	// calls refused.
	paceSpan = 5 * time.Millisecond
	paceKept = 0.9
	// A caller who waits for patience or longer is let in by the greater of two paces: the last
	// one, and that of the calls answered within about evenly. A storm shows in the calls answered
	// and refused within about lately.
	patience = 250 * time.Millisecond
	evenly   = 500 * time.Millisecond
	lately   = 200 * time.Millisecond
	// paceDoubles is how often a pace doubles while nothing confirms it.
	paceDoubles = 100 * time.Millisecond
)

// Crowd refuses calls that would be too late for their callers (load shedding). It does so with
// their headers, before anything else is done for them. If more calls come than a node can decide,
// it would otherwise spend its time on calls whose callers have gone when they are answered: calls
// also wait in sockets and for a processor, and the node cannot see for how long.
//
// A call is refused if the calls ahead of it would take more than two fifths of its caller's time.
// If that time is short, they may take mostAhead. What they take is reckoned by the pace at which
// calls were last answered while many were in. Of other callers' calls only those are ahead that
// have their turns first. A caller who names no time is never refused here.
//
// Callers who come again as soon as they are refused may take all the time that decisions need. In
// such a storm, calls wait outside, before their messages are read, until they are let in or their
// callers are about to give up. Callers take turns there. Safe for concurrent use.
type Crowd struct {
	refused error
	shed    func()

	mu      sync.Mutex
	in      int
	callers map[string]int // how many calls are in of those that have any
	outside turns[*guest]
	// coming holds those whose handlers may not have begun yet: each that came in since the last look,
	// and kept of those before.
	coming []*guest
	kept   int
	looked time.Time

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

// takes takes in that n came or went within a time. What happened within about the time of memory
// weighs most.
func (r *rate) takes(n int, within, memory time.Duration) {
	*r += (rate(float64(n)/within.Seconds()) - *r) * rate(1-math.Exp(-float64(within)/float64(memory)))
}

// NewCrowd returns an empty Crowd. refused is the error of each call that it refuses, and shed
// counts them.
func NewCrowd(refused error, shed func()) *Crowd {
	return &Crowd{refused: refused, shed: shed, callers: map[string]int{}}
}

// place is where a call is.
type place int

const (
	refused place = iota
	isIn
	isOutside
	hasLeft
)

// comes lets a call in, makes it wait outside, or refuses it.
func (c *Crowd) comes(g *guest, now time.Time) place {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.coming) >= c.kept+coming || now.Sub(c.looked) >= lookEvery {
		c.look(now)
	}
	switch {
	case c.fits(g, now):
		c.letIn(g, now)
	case c.outside.waiting >= min(maxOutside, int(g.until.Sub(now)/outsideEach)) || now.After(c.storm):
		c.turned++
		g.place = refused
		return refused
	default:
		c.outside.comes(g)
		g.place = isOutside
	}
	c.coming = append(c.coming, g)
	return g.place
}

// look lets out the calls whose handlers will not begin.
func (c *Crowd) look(now time.Time) {
	c.coming = slices.DeleteFunc(c.coming, func(g *guest) bool {
		over := now.Sub(g.ends) > neverBegins
		if over && !g.begun.Load() {
			c.goes(g)
		}
		return over || g.begun.Load()
	})
	c.kept, c.looked = len(c.coming), now
}

// fits reports whether a call has time for those ahead of it.
func (c *Crowd) fits(g *guest, now time.Time) bool {
	own, callers := c.callers[g.caller], len(c.callers)
	if own == 0 {
		callers++
	}
	return c.in < alwaysIn || !c.late(min((own+1)*callers, c.in), now, g.ends.Sub(now))
}

func (c *Crowd) letIn(g *guest, now time.Time) {
	g.place = isIn
	c.in++
	c.callers[g.caller]++
	if c.in >= alwaysIn/2 && c.since.IsZero() {
		c.since, c.answered, c.turned = now, 0, 0
	}
}

// late reports whether so many calls take too long at the last pace.
func (c *Crowd) late(ahead int, now time.Time, waits time.Duration) bool {
	for c.pace > 0 && now.Sub(c.paced) > paceDoubles {
		if c.pace, c.paced = 2*c.pace, c.paced.Add(paceDoubles); c.pace > 1e9 {
			c.pace = 0
		}
	}
	pace, takes := c.pace, waits.Seconds()/crowdParts
	if waits < patience {
		takes = min(takes, mostAhead.Seconds())
	} else if pace > 0 {
		pace = max(pace, float64(c.even))
	}
	return pace > 0 && float64(ahead) > pace*takes
}

// leaves lets a call out, unless it has left, and lets waiting calls in for it. answered reports
// whether the call was answered in time.
func (c *Crowd) leaves(g *guest, now time.Time, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.place != isIn {
		return
	}
	c.goes(g)
	if answered {
		c.answered++
	}
	c.measure(now)
	c.outside.next(now, func(g *guest) bool {
		fits := c.fits(g, now)
		if fits {
			c.letIn(g, now)
		}
		return fits
	})
}

// goes takes out a call, whether it is in or waits outside.
func (c *Crowd) goes(g *guest) {
	switch g.place {
	case isIn:
		c.in--
		if c.callers[g.caller]--; c.callers[g.caller] == 0 {
			delete(c.callers, g.caller)
		}
	case isOutside:
		c.outside.leaves(&g.waiter)
	}
	g.place = hasLeft
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

// givesUp refuses a call that waits outside. If it was let in meanwhile it returns false.
func (c *Crowd) givesUp(g *guest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.place != isOutside {
		return false
	}
	c.goes(g)
	return true
}
