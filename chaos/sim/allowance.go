package sim

import (
	"math"

	"github.com/quotad/quotad/region/admit"
)

// allowance is what may be admitted above the ceiling for something that happened, whose excess is
// printed: in the cells of a stretch of time, and in no others.
type allowance struct {
	from, to int64 // store time, µs since 1970
	units    int64
	cause    string
}

// allow has more than the ceiling allowed for what happens in a region now. It may be admitted in the
// cell of this moment; of the sliding kinds as long as use of now weighs; of a bucket from now on, for
// one that is asked for all it has never makes up for it. What concerns rights concerns the next cell,
// too, for which they may have been promised.
func (b *bucket) allow(r *region, units int64, cause string, rights bool) {
	from, to := r.clock()+min(r.storeAhead, 0), r.latest()
	switch k := b.limit.kind(); {
	case k.Bucket():
		to = math.MaxInt64
	case k.Sliding():
		to += 2 * b.limit.policy.Window.Microseconds()
	case rights:
		to += b.cell()
	}
	b.excused = max(b.excused, to/b.cell()+1)
	b.allowFor(from, to, units, cause)
}

// allowUse is allow for what concerns use alone: shares add up all the same.
func (b *bucket) allowUse(r *region, units int64, cause string) {
	was := b.excused
	b.allow(r, units, cause, false)
	b.excused = was
}

func (b *bucket) allowFor(from, to, units int64, cause string) {
	if units > 0 {
		b.allowances = append(b.allowances, allowance{from, to, units, cause})
	}
}

// allowedIn returns what may be admitted above the ceiling in a cell, and why.
func (b *bucket) allowedIn(cell int64) (units int64, causes []string) {
	units = b.forClocks
	if units > 0 {
		causes = append(causes, "clocks apart")
	}
	for _, a := range b.allowances {
		if a.from < (cell+1)*b.cell() && cell*b.cell() <= a.to {
			units += a.units
			causes = append(causes, a.cause)
		}
	}
	return units, causes
}

// spentAlone is who admits without the store, in a window: node and window are 0 of a bucket.
type spentAlone struct {
	region, node int
	window       int64
}

// spentAlone says whether nodes of a region have ever admitted without their store.
func (b *bucket) spentAlone(r *region) bool {
	for who := range b.local {
		if who.region == r.index {
			return true
		}
	}
	return false
}

// usage is when a node last admitted of a bucket by its store.
type usage struct {
	now    int64 // µs since the start
	at     int64 // store time
	losses int   // that the store had had
}

// admits notes what a node admits.
func (n *node) admits(b *bucket, d admit.Decision, units int64) {
	if d.At == 0 {
		return
	}
	n.lately[b] = usage{n.w.now, d.At, n.r.losses}
	n.onACopy(b, units)
	b.paces[n.r.index].add(n.w.now, d.At/b.limit.policy.Window.Microseconds(), units)
}

// knows is until when a node knows a bucket to be in its store, for it used it: at least as long as its
// cell lasts.
func (n *node) knows(b *bucket) int64 {
	u, used := n.lately[b]
	if !used || u.losses != n.r.losses {
		return 0
	}
	return (u.at/b.cell() + 1) * b.cell()
}

// pace is how fast a region admits of one bucket.
type pace struct {
	last  []admission // of the last second
	sum   int64       // of them
	peaks map[int64]int64
}

type admission struct{ at, units int64 }

// add takes in what is admitted at a time, in a window.
func (p *pace) add(at, window, units int64) {
	const second = 1_000_000
	p.last, p.sum = append(p.last, admission{at, units}), p.sum+units
	for p.last[0].at <= at-second {
		p.sum -= p.last[0].units
		p.last = p.last[1:]
	}
	if p.peaks == nil {
		p.peaks = map[int64]int64{}
	}
	p.peaks[window] = max(p.peaks[window], p.sum)
}

// fastest is the most that was admitted in a second of a window or the one before it, at least 1.
func (p *pace) fastest(window int64) int64 { return max(p.peaks[window], p.peaks[window-1], 1) }
