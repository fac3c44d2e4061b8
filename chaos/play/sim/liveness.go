package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// Calm says how long after the last fault (Plan.Heal) a bucket need not be decided with its region's
// store, if so much has happened in the region. docs/development/faults.md has the same rows.
type Calm struct {
	Faults []int // rows of the fault matrix
	What   string
	Within time.Duration // after the last fault
	Closed Closed        // and if that is later
}

// Closed says until when a bucket may stay closed because of what its store has lost.
type Closed string

// What may keep a bucket closed.
const (
	byNothing Closed = "-"
	byCells   Closed = "its cells count no more" // that of the loss and the next
	byUse     Closed = "its use counts no more"  // that of the cell of the loss
	byClocks  Closed = "clocks show that time"   // which the store had shown
)

// The rows of Calms.
const (
	nothingLost = iota
	shortLost
	longLost
	journalLost
	crowdedLost
	documentChanged
	clocksAhead
)

// Calms are the rows.
var Calms = []Calm{
	nothingLost: {[]int{1, 2, 3, 4, 5, 6, 12, 13, 14, 16, 18, 23, 24, 26, 27, 29, 30, 31, 33},
		"nothing lost", 3 * time.Second, byNothing},
	shortLost: {[]int{20, 21}, "store or bucket lost; window up to 60 s, or bucket kinds",
		3 * time.Second, byCells},
	longLost: {[]int{20, 21}, "store or bucket lost; longer window", 8 * time.Second, byNothing},
	journalLost: {[]int{18, 20, 21},
		"the same, and a journal lost or old whose node had not read the store", 8 * time.Second, byUse},
	crowdedLost: {[]int{20, 21}, "the same, and no room in the nodes for all buckets",
		8 * time.Second, byUse},
	documentChanged: {[]int{29}, "documents opened or closed: after that", 2 * time.Second,
		byNothing},
	clocksAhead: {[]int{27}, "clocks ahead by half an hour or more", 3 * time.Second, byClocks},
}

// closing is what a region's store has lost last of a bucket.
type closing struct {
	at int64 // when it lost it, or when a node noticed, µs; 0: nothing was lost
	// used is the store time until which use in the cell of the loss counts, and weighs until which
	// rows of the next cell do.
	used, weighs quantity.StoreTime
	// unread: then no node had read what one did that is gone under its name.
	unread bool
	// hindered is since when the store had not answered all in time when it lost it, µs; 0: it had.
	hindered int64
}

// unnamed is for how long no node may have read from the store which others there are, before it loses
// its data, µs, so that a node which is added meanwhile is known to be new.
const unnamed = 2 * allocator.Second

// hinders notes that from now on the store does not answer all in time.
func (r *region) hinders() {
	if !r.late() {
		r.hindered = r.w.now
	}
}

// late reports whether the store is out of reach, or slow, or one of its servers does not answer.
func (r *region) late() bool { return r.down > 0 || r.each > 0 || slices.Max(r.silent) > 0 }

// journalAhead is how far ahead of the store's time a node that starts anew may believe it to be, µs.
const journalAhead = 3 * allocator.Second

// mayBeClosed records that from now on a bucket may be closed in a region, since its store has lost
// it, or a node has noticed so. The loss may count as later by so many µs. What was lost before Heal
// must be noticed soon after.
func (b *bucket) mayBeClosed(r *region, later int64) {
	if w := r.w; w.now < w.plan.Heal+Calms[nothingLost].Within.Microseconds() {
		cell := b.cells().At(r.mayShow().Add(later))
		before := b.closed[r.index]
		// Whoever read since the loss before has nothing of what that took.
		lately := w.now-before.at < b.memory()
		unread := r.unread(b) || before.unread && lately
		hindered := int64(0)
		if r.late() {
			hindered = max(r.hindered, 1)
		}
		if before.hindered > 0 && lately && (hindered == 0 || before.hindered < hindered) {
			hindered = before.hindered
		}
		// The store's time of a loss is never before that of the one before.
		b.closed[r.index] = closing{max(w.now, 1), max(b.weighsUntil(cell), before.used),
			max(b.weighsUntil(cell+1), before.weighs), unread, hindered}
	}
}

// weighsUntil returns the store time until which a cell weighs.
func (b *bucket) weighsUntil(cell quantity.Cell) quantity.StoreTime {
	end := b.cells().Opens(cell + 1)
	if b.limit.kind().Sliding() {
		end = end.Add(b.window() + 2*algorithms.ClockMargin)
	}
	return end
}

// wasAhead returns how far the region's store may have shown more than its clocks show now, µs. Its
// time stands still until they show as much.
func (r *region) wasAhead() int64 { return max(r.farthest-r.ahead, 0) }

// mayShow returns the latest store time that a node may believe the region's store to have shown. After a
// loss the time may have begun ahead of the clocks, and a loss soon after that finds it there.
func (r *region) mayShow() quantity.StoreTime { return max(r.clock().Add(r.wasAhead()), r.began) }

// wasFarAhead reports whether the store may have shown a time so far from its nodes' clocks that it
// refuses them.
func (r *region) wasFarAhead() bool { return r.wasAhead() >= algorithms.MaxClockStep/2 }

// goesAhead records how far the region's clocks are ahead.
func (r *region) goesAhead() {
	r.farthest = max(r.farthest, r.ahead+r.storeAhead)
	for _, n := range r.nodes {
		r.farthest = max(r.farthest, r.ahead+n.ahead)
	}
}

// watch has every bucket asked for by every node after the last fault.
func (w *world) watch() {
	for _, r := range w.regions {
		for k := range w.plan.Keys {
			asked := map[string]bool{}
			for _, l := range w.limits {
				if b := l.buckets[k]; w.decides(b, r) && !asked[l.policy.Domain] {
					asked[l.policy.Domain] = true
					w.watchBucket(b, r)
				}
			}
		}
	}
}

// watchBucket has a bucket asked for in a region, by its nodes in turn. A short window is asked for
// only until probes are measured, since these must be given what they ask for.
func (w *world) watchBucket(b *bucket, r *region) {
	until := w.plan.End - allocator.Second/2
	if tail := w.plan.End - w.plan.Heal; b.key == 0 && 4*b.window() <= tail {
		until = w.plan.Heal + 3*tail/8
	}
	turn := 0
	var again func()
	again = func() {
		w.ask(r.nodes[turn%len(r.nodes)], &request{q: w.question(b.limit.policy.Domain, b.key)})
		turn++
		next := int64(allocator.Second)
		if turn < len(r.nodes) { // each notices soon what its store has lost
			next = allocator.Second / 5
		}
		if w.now+next < until {
			w.in(next, again)
		}
	}
	w.in(1, again)
}

// decides reports whether the newest document gives a region a part of a bucket.
func (w *world) decides(b *bucket, r *region) bool {
	_, has := b.limit.of(w.adopted)
	return has && belongs(w.documents[w.adopted-1], r.name)
}

// checkLive judges a decision after the last fault.
func (n *node) checkLive(rq *request, d admit.Decision) {
	w, r := n.w, n.r
	if w.now < w.plan.Heal || w.plan.Heal >= w.plan.End || d.FromMemory && d.Allowed {
		return
	}
	without := withoutStore(d)
	if without && !rq.settled(r) {
		return // it names the limit that denies then, which need not be the one that was lost
	}
	for _, b := range rq.buckets {
		decides := d.Limit == b.limit.policy.Name
		if !decides && !d.Allowed || b.limit.policy.Shadow || !w.decides(b, r) {
			continue
		}
		row := b.calm(r)
		switch {
		case !b.settled(r, Calms[row], without):
		case without, d.Reason == admit.Recovering:
			w.breaks("liveness", "limit %s key %d (%s of %v): %s answers %s %v after the last fault: %s",
				b.limit.policy.Name, b.key, b.limit.kind(), span(b.window()), n.name, d.Reason,
				span(w.now-w.plan.Heal), b.whatHappened(r, row))
		default:
			b.live[r.index] = true
		}
	}
}

// withoutStore reports whether a decision was made because the store did not answer.
func withoutStore(d admit.Decision) bool {
	return d.Reason == admit.StoreFailure || d.Reason == admit.StoreFailureLocal ||
		d.Reason == admit.StoreFailureAllowed
}

// calm returns the row of Calms that counts for a bucket in a region.
func (b *bucket) calm(r *region) (row int) {
	lost := b.closed[r.index]
	switch {
	case lost.at == 0:
		return nothingLost
	case !b.recovers():
		return shortLost
	case r.word >= lost.at+journalAhead: // nobody is waited for after the operator's word
		return longLost
	case !r.w.remembersAll():
		return crowdedLost
	}
	for _, n := range r.nodes {
		forgot := n.forgot > 0 && !n.toldByCopies(lost.at)
		unheard := n.unheard || n.added > 0 && lost.hindered > 0 && n.added+unnamed >= lost.hindered && lost.at-lost.hindered > unnamed
		if n.gone || unheard && r.w.now-n.added < b.memory() || forgot && max(lost.at-n.forgot, n.forgot-lost.at) < b.memory() {
			return journalLost
		}
	}
	if lost.unread {
		return journalLost
	}
	return longLost
}

// unread reports whether no node of the region has read what one did with a bucket that is gone under its
// name, and may still count.
func (r *region) unread(b *bucket) bool {
	for name, since := range r.left {
		if r.w.now-since < b.memory() && !r.knowsOf(name) {
			return true
		}
	}
	return false
}

// settled reports whether the time is over in which a bucket need not be decided with its store.
// Closed buckets are decided with it. A store whose time is far from a node's clock decides nothing.
func (b *bucket) settled(r *region, c Calm, without bool) bool {
	w, lost, until := r.w, b.closed[r.index], quantity.StoreTime(0)
	within := c.Within.Microseconds()
	if w.now-w.plan.Heal <= within {
		return false
	}
	switch {
	case without:
		return !r.wasFarAhead() && w.now-r.changed > Calms[documentChanged].Within.Microseconds()
	case c.Closed == byCells:
		until = lost.weighs
	case c.Closed == byUse:
		until = lost.used
	}
	return r.clock() > until.Add(allocator.Second/2)
}

// settled reports whether the time is over in which any of a request's buckets need not be decided with
// the store.
func (rq *request) settled(r *region) bool {
	return !slices.ContainsFunc(rq.buckets, func(b *bucket) bool {
		return r.w.decides(b, r) && !b.settled(r, Calms[b.calm(r)], true)
	})
}

// whatHappened describes what counts for a bucket in a region.
func (b *bucket) whatHappened(r *region, row int) string {
	all := []string{Calms[row].What}
	if lost := b.closed[r.index]; lost.at > 0 {
		all = append(all, fmt.Sprintf("lost at %v and weighs for %v more", span(lost.at), span(lost.weighs.Sub(r.clock()))))
	}
	for _, n := range r.nodes {
		if n.forgot > 0 && row == journalLost {
			all = append(all, fmt.Sprintf("%s lost its journal at %v", n.name, span(n.forgot)))
		}
	}
	if ahead := r.wasAhead(); ahead > 0 {
		all = append(all, fmt.Sprintf("clocks were ahead by %v", span(ahead)))
	}
	return strings.Join(all, "; ")
}

// Liveness counts the buckets of regions that were decided with the store after the time that Calms
// allows, and those whose time was not over or of which no decision was seen.
type Liveness struct{ Judged, Not int64 }

// Add adds the counts of another run.
func (l *Liveness) Add(o Liveness) { l.Judged, l.Not = l.Judged+o.Judged, l.Not+o.Not }

// countLive counts the buckets.
func (w *world) countLive() {
	for _, b := range w.buckets() {
		for i, r := range w.regions {
			if w.decides(b, r) && !b.limit.policy.Shadow {
				w.counts.Liveness.Judged += oneIf(b.live[i])
				w.counts.Liveness.Not += oneIf(!b.live[i])
			}
		}
	}
}
