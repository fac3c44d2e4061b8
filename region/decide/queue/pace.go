package queue

import "time"

const (
	// firstScript is the assumed time of a script call on one bucket before any was measured. It is
	// more than the call takes on most machines, because a first pipeline that is too long makes
	// all others late.
	firstScript = 250 * time.Microsecond
	// firstBase is the assumed time of a round trip without work before any was measured.
	firstBase = 100 * time.Microsecond
	// shortestScript is the lower bound of the estimate. Without it, pipelines that are timed too
	// coarsely could make it 0.
	shortestScript = 2 * time.Microsecond
	// remembered is the work over which old measurements fade: a few pipelines.
	remembered = 100 * scriptWork
	// oneTrip bounds the weight of a single round trip against all before it, to 1/oneTrip, however
	// short those were.
	oneTrip = 8
	// outlier bounds a single measurement to this many times the expected time.
	outlier = 4
	// little is the work of a round trip that shows how long one takes without work, and
	// littleEvery is how many may pass without such a one. Under load all would carry much, and
	// the way to a store that is far would be taken for work.
	little, littleEvery = 2 * scriptWork, 32
	// maxBase bounds the assumed time of a round trip without work, to 1/maxBase of the deadline.
	maxBase = 5
	// leastWorked is the part of a round trip that counts as work even if it took less than one
	// without work was assumed to take: 1/leastWorked.
	leastWorked = 16
	// underWayParts bounds the work of all round trips under way together to 1/underWayParts of the
	// deadline. Every new request waits for that work, however short the queue is. With four round
	// trips and 5 instead of 10, one processor for a node and its Redis decided 4 % more under
	// overload, and other callers waited up to 40 ms instead of 25.
	underWayParts = 20
	// fadeEvery is how often an estimate that no round trip confirms is halved, until it is what is
	// assumed before any was measured.
	fadeEvery = time.Second
)

// pace measures how fast the store works, apart from how long the way to it takes. Redis does one
// thing at a time. So of two round trips that overlap, the later one did its work after the return
// of the earlier one. Not safe for concurrent use.
type pace struct {
	deadline time.Duration
	underWay time.Duration // how many round trips are made at a time
	base     time.Duration // estimated time of a round trip without work
	took     float64       // nanoseconds spent on work, fading
	work     float64       // work done in that time, fading
	last     time.Time     // when a round trip last came back
	fades    time.Time     // when the estimate is to be halved if none comes back
	much     int           // round trips since the last with little work
}

func newPace(deadline time.Duration, underWay int) pace {
	return pace{deadline: deadline, underWay: time.Duration(underWay), base: firstBase,
		took: float64(firstScript), work: scriptWork}
}

// done takes the measurement of a round trip. alone says that no other was under way when it was
// sent.
func (p *pace) done(sent, back time.Time, work int64, alone bool) {
	if work == 0 {
		return
	}
	whole := back.Sub(sent)
	p.far(whole, work, alone)
	took := max(whole-p.base, whole/leastWorked)
	if p.last.After(sent) {
		took = min(took, back.Sub(p.last)) // until then the store was busy with another round trip
	}
	p.last, p.fades = later(p.last, back), back.Add(fadeEvery)
	took = min(took, outlier*(p.base+p.takes(work)))
	keep := min(1-1./oneTrip, remembered/(remembered+float64(work)))
	p.took = p.took*keep + float64(max(took, 0))
	p.work = p.work*keep + float64(work)
}

// far takes in how long a round trip took as a whole. One with little work that waited for no other
// shows how long all take. None takes less, so any that did shows that the estimate is too high.
func (p *pace) far(whole time.Duration, work int64, alone bool) {
	p.much++
	if alone && work <= little {
		p.much = 0
		// Half of what its work is assumed to take: with all of it, an estimate by which the work
		// takes all the time of such round trips would stay.
		way := min(whole, outlier*(p.base+p.takes(work))) - p.takes(work)/2
		p.base = min(p.base+max(way-p.base, 0)/2, p.deadline/maxBase)
	}
	if whole < p.base {
		p.base -= (p.base - whole) / 2
	}
}

// fade halves an estimate that nothing has confirmed lately. A store that was slow may have
// recovered, and a high estimate has fewer requests find out.
func (p *pace) fade(now time.Time) {
	for ; !p.fades.IsZero() && now.After(p.fades); p.fades = p.fades.Add(fadeEvery) {
		if p.took/p.work*scriptWork/2 < float64(firstScript) {
			p.fades = time.Time{}
			return
		}
		p.took /= 2
	}
}

// takes returns the time that some work will take.
func (p *pace) takes(work int64) time.Duration {
	const least = float64(shortestScript) / scriptWork
	return time.Duration(float64(work) * max(p.took/p.work, least))
}

// pipelineWork returns how much work one round trip may carry, at least scriptWork. underWay round
// trips of that size take 1/underWayParts of the deadline together, or as long as the way to the
// store and back.
func (p *pace) pipelineWork() int64 {
	share := float64(max(p.deadline/underWayParts, p.base) / p.underWay)
	return max(int64(share/float64(max(p.takes(1000), 1))*1000), scriptWork)
}

// due says that a round trip with little work is to be made, alone.
func (p *pace) due() bool { return p.much >= littleEvery }

// next is pipelineWork for the round trip that begins now: now and then it is little.
func (p *pace) next() int64 {
	if p.due() {
		p.much = 0
		return min(little, p.pipelineWork())
	}
	return p.pipelineWork()
}
