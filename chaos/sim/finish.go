package sim

import (
	"maps"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/region/admit"
)

// probe is what one region asks for after the last fault, of one bucket: what it gets then shows whether the world is well again.
type probe struct {
	b                 *bucket
	r                 *region
	offered, admitted int64 // of late
	withoutStore      int64
	demanding         bool // it should get most of it
}

// probeEach is how often a probe asks, µs.
const probeEach = allocator.Second / 10

// probeAll begins the probes: of the first key of every limit, in a region that the seed chooses.
func (w *world) probeAll() {
	random := w.plan.random(forPlan, 1)
	for _, l := range w.limits {
		r := w.regions[random.IntN(len(w.regions))]
		p := &probe{b: l.buckets[0], r: r}
		w.probes = append(w.probes, p)
		units, per := p.demand()
		p.demanding = p.mayDemand()
		var due int64
		var again func()
		again = func() {
			due += units * probeEach
			if cost := due / per; cost > 0 {
				due -= cost * per
				p.ask(cost)
			}
			if w.now < w.plan.End-probeEach {
				w.in(probeEach, again)
			}
		}
		w.in(1, again)
	}
}

// demand is what a probe asks for: most of what the region may hold, so many units in so many µs.
func (p *probe) demand() (units, per int64) {
	e := p.b.exposure(1)
	f := p.b.spec.Entitlements[p.r.name]
	most := f
	for _, other := range p.r.w.regions {
		if other != p.r {
			most += allocator.Part(p.b.spec.Entitlements[other.name], p.b.spec.Lending)
		}
	}
	if e.Borrowing >= 0 {
		most = min(most, f+allocator.Part(f, e.Borrowing))
	}
	return max(most*8/10, 1), e.Window
}

// mayDemand says whether the probe should get nearly all: rights move fast enough for the window, no other limit denies, no
// clock that was ahead holds the region back, its bucket holds what is asked for at once, and nobody lied: an untrue hint of a
// later life of a node hides its true ones.
func (p *probe) mayDemand() bool {
	w, l := p.r.w, p.b.limit
	tail := w.plan.End - w.plan.Heal
	units, per := p.demand()
	fits := !l.kind().Bucket() || p.b.spec.Bursts[p.r.name]*per >= units*probeEach
	windows := int64(4)
	if l.kind().Sliding() { // after a loss all is closed for three, and it may be found out late
		windows = 8
	}
	return !w.lied && len(w.concern(l.policy.Domain, 0)) == 1 && !l.policy.Home() && l.policy.Window.Microseconds()*windows <= tail && units >= 10 &&
		w.back == 0 && fits && l.kind() != algorithms.LeakyBucket && l.policy.Limit >= 20 && l.policy.Window.Microseconds() >= 10*w.plan.farthest()
}

// farthest is the longest round trip between two regions, µs.
func (p *Plan) farthest() (most int64) {
	for i := range p.OneWay {
		for j := range p.OneWay[i] {
			most = max(most, p.OneWay[i][j]+p.OneWay[j][i])
		}
	}
	return most
}

// part is what a request of the probe costs: a fiftieth of the limit, or as much as fits into the region's bucket.
func (p *probe) part() int64 {
	part := p.b.limit.policy.Limit / 50
	if p.b.limit.kind().Bucket() {
		part = min(part, p.b.spec.Bursts[p.r.name])
	}
	return max(part, 1)
}

// ask asks for units, and counts what is admitted of late.
func (p *probe) ask(cost int64) {
	w := p.r.w
	n := p.r.nodes[int(w.now/100_000)%len(p.r.nodes)]
	for cost > 0 {
		part := min(cost, p.part())
		cost -= part
		rq := &request{q: w.question(p.b.limit.policy.Domain, 0), buckets: w.concern(p.b.limit.policy.Domain, 0)}
		rq.q.Cost = part
		late := w.now > w.plan.End-(w.plan.End-w.plan.Heal)/3
		rq.done = func(d admit.Decision) {
			if !late {
				return
			}
			p.offered += part
			if d.Allowed {
				p.admitted += part
			}
			if d.At == 0 {
				p.withoutStore++
			}
		}
		w.ask(n, rq)
	}
}

// finish judges a run that is over.
func (w *world) finish() {
	for _, r := range w.regions {
		for _, n := range r.nodes {
			w.checkWell(n)
		}
	}
	for _, p := range w.probes {
		w.checkProbe(p)
	}
	for _, b := range w.buckets() {
		w.checkJudge(b)
	}
}

// checkWell checks that a node lives, hears all regions and waits for nothing.
func (w *world) checkWell(n *node) {
	if n.live == nil {
		w.breaks("convergence", "%s does not live at the end", n.name)
		return
	}
	for _, p := range n.live.Peers() {
		if p.Degraded {
			w.breaks("convergence", "%s does not hear %s, %v after the last fault", n.name, p.Peer, span(w.now-w.plan.Heal))
		}
	}
	if len(n.waiting) > 0 && w.now-n.waiting[0].sent > 5*allocator.Second {
		w.breaks("convergence", "%s has %d requests that wait since %v", n.name, len(n.waiting), span(w.now-n.waiting[0].sent))
	}
}

// checkProbe checks that a region whose demand came last is served.
func (w *world) checkProbe(p *probe) {
	switch {
	case p.withoutStore > int64(2*len(p.r.nodes)) && w.clocksFit(): // each finds a loss out by the first
		w.breaks("convergence", "limit %s: %s decides %d requests without its store, %v after the last fault",
			p.b.limit.policy.Name, p.r.name, p.withoutStore, span(w.now-w.plan.Heal))
	case p.demanding && p.admitted*10 < p.offered*7:
		w.breaks("convergence", "limit %s (%s): %s is given %d of %d units, and could have them all",
			p.b.limit.policy.Name, p.b.limit.kind(), p.r.name, p.admitted, p.offered)
	}
}

// clocksFit says whether no clock ever was so far off that stores refused to decide.
func (w *world) clocksFit() bool { return w.back < algorithms.MaxClockStep/2 }

// checkJudge asks the judge, which knows nothing but what was answered.
func (w *world) checkJudge(b *bucket) {
	if b.refunded {
		return
	}
	v := b.judge.Verdict()
	if v.Misplaced > 0 || v.Duplicates > 0 {
		w.breaks("answers", "limit %s key %d: %v: %v", b.limit.policy.Name, b.key, v, v.Violations)
	}
	over := b.judge.Excesses(w.plan.Keys[b.key])
	for _, cell := range slices.Sorted(maps.Keys(over)) {
		allowed, causes := b.allowedIn(cell)
		if over[cell] > allowed {
			text := ""
			for _, one := range v.Violations {
				if one.Cell == cell {
					text = one.Text
				}
			}
			w.breaks("ceiling", "limit %s key %d (%s): cell %d is %d above the ceiling, %d of it allowed %v: %s",
				b.limit.policy.Name, b.key, b.limit.kind(), cell, over[cell], allowed, causes, text)
			return
		}
	}
}
