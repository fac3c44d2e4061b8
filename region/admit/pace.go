package admit

import "time"

const (
	// firstScript is how long a script call on one bucket is taken to take before one was measured: more than it does on
	// most machines, for a first pipeline that is too long makes all others late.
	firstScript = 250 * time.Microsecond
	// shortestScript bounds the estimate from below: pipelines that are timed too coarsely do not make it 0.
	shortestScript = 2 * time.Microsecond
	// remembered is the work over which measurements fade: a few pipelines.
	remembered = 100 * scriptWork
	// oneTrip is the most that a single round trip weighs against all before it, as 1/oneTrip, however short they were.
	oneTrip = 8
	// outlier is how many times the expected time a round trip may count for.
	outlier = 4
	// maxBase is how many times the deadline is what a round trip without work is taken to take at most.
	maxBase = 40
	// underWayParts bounds the work under way, all round trips together, to this part of the deadline: whoever comes waits
	// for it, however little is queued. With 5, one processor for a node and its Redis decided 4 % more under overload, and
	// others waited up to 40 ms instead of 25.
	underWayParts = 10
	// marginParts leaves this part of the deadline to what is not the store's work.
	marginParts = 5
)

// pace measures how fast the store works. Redis does one thing at a time, so of round trips that overlap each has the time
// since the one before it came back. Not safe for concurrent use.
type pace struct {
	deadline time.Duration
	base     time.Duration // a round trip without work, about
	took     float64       // nanoseconds, fading
	work     float64       // done in them
	last     time.Time     // when a round trip last came back
}

func newPace(deadline time.Duration) pace {
	return pace{deadline: deadline, base: 100 * time.Microsecond, took: float64(firstScript), work: scriptWork}
}

// done takes in a round trip.
func (p *pace) done(sent, back time.Time, work int64) {
	if work == 0 {
		return
	}
	whole := back.Sub(sent)
	took := whole
	if p.last.After(sent) {
		took = back.Sub(p.last) // the store was busy with another until then
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

// takes returns how long work will take.
func (p *pace) takes(work int64) time.Duration {
	const least = float64(shortestScript) / scriptWork
	return time.Duration(float64(work) * max(p.took/p.work, least))
}

// pipelineWork returns how much work a round trip may carry: with others before it, all together take a part of the
// deadline, 1/underWayParts.
func (p *pace) pipelineWork() int64 {
	share := float64(p.deadline / underWayParts / underWay)
	return max(int64(share/float64(max(p.takes(1000), 1))*1000), scriptWork)
}

// margin is the part of the deadline that is left for what is not the store's work, when a request is let into the queue.
func (p *pace) margin() time.Duration { return p.deadline / marginParts }
