package sim

import (
	"maps"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// probe asks for units of one bucket in one region after the last fault. What it is granted shows
// whether the world works again.
type probe struct {
	b                 *bucket
	by                entry // what the newest document says of it
	r                 *region
	offered, admitted quantity.Units // in the last third of the time after Heal
	demanding         bool           // it should be granted most of what it asks for
}

// probeEach is the time between a probe's requests, µs.
const probeEach = allocator.Second / 10

// probeAll begins the probes, one for the first key of each limit, in a region that the seed
// chooses.
func (w *world) probeAll() {
	random := w.plan.random(forPlan, 1)
	for _, l := range w.limits {
		r := w.regions[random.IntN(len(w.regions))]
		by, has := l.of(w.adopted)
		if !has || !belongs(w.documents[w.adopted-1], r.name) {
			continue
		}
		p := &probe{b: l.buckets[0], by: by, r: r}
		w.probes = append(w.probes, p)
		units, per := p.demand()
		p.demanding = p.mayDemand() && len(w.envoys) == 0
		var due quantity.Units
		var again func()
		again = func() {
			due += units * probeEach
			if cost := due / quantity.Units(per); cost > 0 {
				due -= cost * quantity.Units(per)
				p.ask(cost)
			}
			if w.now < w.plan.End-probeEach {
				w.in(probeEach, again)
			}
		}
		w.in(1, again)
	}
}

// demand returns what a probe asks for: units in per µs, 80 % of the most that the region may hold.
func (p *probe) demand() (units quantity.Units, per int64) {
	if len(p.r.w.plan.Versions) > 0 {
		return max(holdOf(p.by.Limit, p.r.index).most*8/10, 1), p.b.window()
	}
	f := p.b.spec.Entitlements[p.r.name]
	most := f
	for _, other := range p.r.w.regions {
		if other != p.r {
			most += allocator.Part(p.b.spec.Entitlements[other.name], p.b.spec.Lending)
		}
	}
	if borrowing := quantity.PPM(p.b.limit.policy.BorrowingLimit); borrowing >= 0 {
		most = min(most, f+allocator.Part(f, borrowing))
	}
	return max(most*8/10, 1), p.b.window()
}

// mayDemand reports whether the probe should be granted nearly all of its demand. Rights must move
// fast enough for the window; no other limit may deny; no clock that was ahead may hold the region
// back; the bucket must hold what is asked for at once; and nobody may have lied, because an untrue
// hint that claims a later incarnation of a node hides the node's true hints.
func (p *probe) mayDemand() bool {
	w, l := p.r.w, p.b.limit
	if w.lied || len(w.plan.Versions) > 0 || l.owes() {
		return false
	}
	tail := w.plan.End - w.plan.Heal
	units, per := p.demand()
	fits := !l.kind().Bucket() || p.b.spec.Bursts[p.r.name]*quantity.Units(per) >= units*probeEach
	windows := int64(4)
	// After a loss, all is closed for three windows, and the loss may be noticed late.
	if l.kind().Sliding() {
		windows = 8
	}
	return len(w.concern(l.policy.Domain, 0)) == 1 && !l.policy.Home() &&
		l.policy.Window.Microseconds()*windows <= tail && units >= 10 &&
		w.back == 0 && fits && l.kind() != algorithms.LeakyBucket && l.policy.Limit >= 20 &&
		l.policy.Window.Microseconds() >= 10*w.plan.farthest()
}

// farthest returns the longest round trip between two regions, µs.
func (p *Plan) farthest() (most int64) {
	for i := range p.OneWay {
		for j := range p.OneWay[i] {
			most = max(most, p.OneWay[i][j]+p.OneWay[j][i])
		}
	}
	return most
}

// part returns the maximum cost of one request of the probe: a fiftieth of the limit, and no more
// than fits into the region's bucket.
func (p *probe) part() quantity.Units {
	part := p.by.Limit.Limit / 50
	if p.b.limit.kind().Bucket() && p.b.spec != nil {
		part = min(part, p.b.spec.Bursts[p.r.name])
	}
	return max(part, 1)
}

// ask asks for units, and counts what is admitted in the last third of the time after Heal.
func (p *probe) ask(cost quantity.Units) {
	w := p.r.w
	n := p.r.nodes[int(w.now/100_000)%len(p.r.nodes)]
	for cost > 0 {
		part := min(cost, p.part())
		cost -= part
		rq := &request{q: w.question(p.b.limit.policy.Domain, 0)}
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
		}
		w.ask(n, rq)
	}
}

// finish makes the checks at the end of a run.
func (w *world) finish() {
	for _, r := range w.regions {
		for _, n := range r.nodes {
			w.checkWell(n)
		}
	}
	w.allAnswered()
	for _, p := range w.probes {
		w.checkProbe(p)
		w.counts.Tightness.Probes++
		w.counts.Tightness.Demanding += oneIf(p.demanding)
	}
	for _, b := range w.buckets() {
		w.checkJudge(b)
		w.counts.Tightness.measure(b)
	}
	w.checkProxies()
	w.countLive()
}

// checkWell checks that a node lives, hears all regions, works under the newest document alone, if
// there was time for that, and has no request waiting for long. A region that the newest document
// gives nothing need not.
func (w *world) checkWell(n *node) {
	newest := w.documents[w.adopted-1]
	if !belongs(newest, n.r.name) || n.gone {
		return
	}
	if n.live == nil {
		w.breaks("convergence", "%s does not live at the end", n.name)
		return
	}
	for _, p := range n.live.Peers() {
		if p.Degraded && belongs(newest, p.Peer) {
			w.breaks("convergence", "%s does not hear %s, %v after the last fault", n.name, p.Peer,
				span(w.now-w.plan.Heal))
		}
	}
	if n.live.Version() < w.adopted && len(w.plan.Versions) > 0 {
		w.breaks("convergence", "%s works under version %d, %v after the last fault, and version %d was given to some region", n.name,
			n.live.Version(), span(w.now-w.plan.Heal), w.adopted)
	}
	if open := n.live.Documents(); len(open) > 1 && w.mayClose() {
		w.breaks("convergence", "%s still works under %s, %v after the last fault", n.name, n.live.Epoch(), span(w.now-w.plan.Heal))
	}
	if len(n.waiting) > 0 && w.now-n.waiting[0].sent > 5*allocator.Second {
		w.breaks("convergence", "%s has %d requests that wait since %v", n.name, len(n.waiting),
			span(w.now-n.waiting[0].sent))
	}
}

// mayClose reports whether documents that others succeed can all have closed by the end: three times
// what each limit takes until it weighs no more, after the last fault and what it left behind.
func (w *world) mayClose() bool {
	longest := int64(0)
	for _, l := range w.limits {
		length := max(2*l.policy.Window.Microseconds(), allocator.Second)
		if l.kind().Bucket() {
			slowest := quantity.Units(l.rule.Limit)
			for _, e := range l.versions {
				slowest = min(slowest, e.Limit.Limit)
			}
			length = max(length, int64(l.drains()/float64(slowest)))
		}
		longest = max(longest, length)
	}
	return w.clocksFit() && w.back == 0 && 3*longest+4*allocator.Second < w.plan.End-w.plan.Heal
}

// checkProbe checks that the region of a probe is granted its demand.
func (w *world) checkProbe(p *probe) {
	if p.demanding && p.admitted*10 < p.offered*7 {
		w.breaks("convergence",
			"limit %s (%s): %s is given %d of %d units, and could have them all",
			p.b.limit.policy.Name, p.b.limit.kind(), p.r.name, p.admitted, p.offered)
	}
}

// clocksFit reports whether no clock was ever so far off that stores refused to decide.
func (w *world) clocksFit() bool { return w.back < algorithms.MaxClockStep/2 }

// checkJudge asks the judge, which knows only the answers to requests, for excesses of the limit.
// It does not know what was refunded: such windows are held to their labels.
func (w *world) checkJudge(b *bucket) {
	v := b.judge.Verdict()
	if v.Misplaced > 0 || v.Duplicates > 0 {
		w.breaks("answers", "limit %s key %d: %v: %v", b.limit.policy.Name, b.key, v, v.Violations)
	}
	if v.ClassesOver > 0 {
		w.breaks("classes", "limit %s key %d (%s): %d of %d requests of classes were admitted above what they may use: %v",
			b.limit.policy.Name, b.key, b.limit.kind(), v.ClassesOver, v.Classes, v.Violations[len(v.Violations)-1])
	}
	if b.refunded {
		return
	}
	levels := b.judge.Levels(w.plan.Keys[b.key])
	for _, cell := range slices.Sorted(maps.Keys(levels)) {
		ceiling := b.ceiling(quantity.Cell(cell))
		over := quantity.Units(levels[cell]) - ceiling
		if over <= 0 {
			continue
		}
		if allowed, causes := b.allowedIn(quantity.Cell(cell)); over > allowed {
			w.breaks("ceiling", "limit %s key %d (%s): cell %d comes to %d of %d, and %d above it are allowed %v",
				b.limit.policy.Name, b.key, b.limit.kind(), cell, levels[cell], ceiling, allowed, causes)
			return
		}
	}
}
