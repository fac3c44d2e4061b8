package admit

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/memory/store"
)

// remembered answers a request that is to be charged by the denials that the node remembers of its
// buckets, once, unless one of these is to be asked about again. It never does for a request with
// an id, whose earlier decision only the store knows, nor for one with shadow or alternative
// limits, which only the store can judge, nor for a cost that the region can never admit, which the
// store says. While the store is out of reach the limits say what becomes of the request. A denial
// that is told from memory counts as demand.
func (f *Flow) remembered() (a answered, denied bool) {
	if f.asked {
		return answered{}, false
	}
	f.asked = true
	if !f.commit || f.way.once != "" || isClosed(f.limiter.config.Closed) || !f.way.fits() {
		return answered{}, false
	}
	l, generation, now := f.limiter, f.limiter.tenure.Generation(), f.limiter.elapsed()
	for i, one := range f.way.applied {
		if l.breakers.tripped(store.ShardOf(one.Target.Key)) {
			return answered{}, false
		}
		d, denies, turn := one.Held.Deny(f.way.costOf(i), generation, now)
		if turn {
			return answered{}, false
		}
		if denies {
			a.tell(len(f.way.applied), i, d)
		}
	}
	if !a.fromMemory {
		return answered{}, false
	}
	l.metrics.rememberedDenials.Inc()
	for i, at := range a.times {
		if at != 0 {
			l.rights.ObserveDenied(f.way.applied[i].Bucket, a.decided.Buckets[i], at,
				f.way.costOf(i))
		}
	}
	return a, true
}

// fits reports whether each limit of a request denies by itself, and could admit its cost here.
func (w *waiting) fits() bool {
	for i, a := range w.applied {
		if a.Limit.Shadow || a.Limit.Alternative || w.costOf(i) > a.Capacity() {
			return false
		}
	}
	return true
}

// tell adds to an answer from memory that one of a request's buckets has no room.
func (a *answered) tell(buckets, which int, d held.Denial) {
	if !a.fromMemory {
		a.fromMemory, a.times = true, make([]quantity.StoreTime, buckets)
		a.decided.Buckets = make([]algorithms.State, buckets)
		a.decided.Answers = []algorithms.Answer{{Verdicts: make([]algorithms.Verdict, buckets)}}
	}
	a.times[which], a.decided.Now = d.Now, max(a.decided.Now, d.Now)
	a.decided.Buckets[which], a.decided.Answers[0].Verdicts[which] = d.State, d.Verdict
}

// heardOf says under which generation the store was asked, and when, by a clock that is never set.
type heardOf struct {
	generation   uint64
	asked, heard time.Duration
}

// learn has the buckets' memory learn what the store answered to a group of requests.
func learn(group []waiting, d algorithms.Decided, of heardOf) {
	for i, a := range group[0].applied {
		a.Held.Learn(answerOf(group, i, d, of))
	}
}

// answerOf returns what the store answered about one of the buckets of a group of requests.
func answerOf(group []waiting, place int, d algorithms.Decided, of heardOf) held.Answer {
	a := held.Answer{Generation: of.generation, Now: d.Now, Asked: of.asked, Heard: of.heard,
		State: d.Buckets[place]}
	a.Ends = group[0].applied[place].Target.Terms.Opens(a.State.Cell + 1)
	for n := range group {
		cost, v := group[n].costOf(place), d.Answers[n].Verdicts[place]
		switch {
		case v.Retry == 0:
			a.Fitted = max(a.Fitted, cost)
			if d.Answers[n].Admitted && !group[n].chunk {
				a.Charged += cost
			}
		case a.Denied == 0 || cost < a.Denied:
			a.Denied, a.Verdict = cost, v
		}
	}
	return a
}
