package admit

import "time"

const (
	// firstScript is the assumed time of a script call on one bucket before any was measured. It is
	// more than the call takes on most machines, because a first pipeline that is too long makes
	// all others late.
	firstScript = 250 * time.Microsecond
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
	// maxBase bounds the assumed time of a round trip without work, to 1/maxBase of the deadline.
	maxBase = 40
	// underWayParts bounds the work of all round trips under way together to 1/underWayParts of the
	// deadline. Every new request waits for that work, however short the queue is. With four round
	// trips and 5 instead of 10, one processor for a node and its Redis decided 4 % more under
	// overload, and other callers waited up to 40 ms instead of 25.
	underWayParts = 20
	// marginParts keeps 1/marginParts of the deadline for what is not the store's work.
	marginParts = 5
)

// pace measures how fast the store works. Redis does one thing at a time. So of two round trips
// that overlap, the later one is measured from the return of the earlier one. Not safe for
// concurrent use.
type pace struct {
	deadline time.Duration
	base     time.Duration // estimated time of a round trip without work
	took     float64       // nanoseconds spent on work, fading
	work     float64       // work done in that time, fading
	last     time.Time     // when a round trip last came back
}

func newPace(deadline time.Duration) pace {
	return pace{deadline: deadline, base: 100 * time.Microsecond, took: float64(firstScript),
		work: scriptWork}
}

// done takes the measurement of a round trip.
func (p *pace) done(sent, back time.Time, work int64) {
	if work == 0 {
		return
	}
	whole := back.Sub(sent)
	took := whole
	if p.last.After(sent) {
		took = back.Sub(p.last) // until then the store was busy with another round trip
	} else {
		took = max(took-p.base, took/outlier)
	}
	p.last = later(p.last, back)
	if work <= 2*scriptWork {
		p.base = min(whole, p.base+p.base/8+1, p.deadline/maxBase)
	}
	took = min(took, outlier*(p.base+p.takes(work)))
	keep := min(1-1./oneTrip, remembered/(remembered+float64(work)))
	p.took = p.took*keep + float64(max(took, 0))
	p.work = p.work*keep + float64(work)
}

// takes returns the time that some work will take.
func (p *pace) takes(work int64) time.Duration {
	const least = float64(shortestScript) / scriptWork
	return time.Duration(float64(work) * max(p.took/p.work, least))
}

// pipelineWork returns how much work one round trip may carry, at least scriptWork. underWay round
// trips of that size take 1/underWayParts of the deadline together.
func (p *pace) pipelineWork() int64 {
	share := float64(p.deadline / underWayParts / underWay)
	return max(int64(share/float64(max(p.takes(1000), 1))*1000), scriptWork)
}

// margin returns the part of the deadline that is kept for what is not the store's work when a
// request enters the queue.
func (p *pace) margin() time.Duration { return p.deadline / marginParts }
