package admit

import (
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
		if l.queue.Tripped(store.ShardOf(one.Target.Key)) {
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
func (w *way) fits() bool {
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
