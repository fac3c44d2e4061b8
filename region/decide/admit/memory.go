package admit

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/store"
)

// remembered answers a request that is to be charged by the denials that the node remembers of its
// buckets, once, unless one of these is to be asked about again. It never does for a request with
// an id, whose earlier decision only the store knows, nor for one with shadow or alternative
// limits, which only the store can judge, nor for a cost that the region can never admit, which the
// store says, nor for a question. While the store is out of reach the limits say what becomes of the request. A denial
// that is told from memory counts as demand, unless its class may use only a part of the rights.
func (f *Flow) remembered() (a queue.Answer, denied bool) {
	if f.asked {
		return queue.Answer{}, false
	}
	f.asked = true
	if !f.commit || f.way.Once != "" || f.limiter.queue.Closed() || !f.way.fits() {
		return queue.Answer{}, false
	}
	var room [8]bool // of most requests
	demands := append(room[:0], make([]bool, len(f.way.Applied))...)
	l, generation, now := f.limiter, f.limiter.tenure.Generation(), f.limiter.elapsed()
	for i, one := range f.way.Applied {
		if l.queue.Tripped(store.ShardOf(one.Target.Key)) {
			return queue.Answer{}, false
		}
		d, denies, turn := one.Held.DenyPart(f.way.PortionOf(i), f.way.CostOf(i), generation, now)
		if turn {
			return queue.Answer{}, false
		}
		if denies {
			tell(&a, len(f.way.Applied), i, d)
			demands[i] = f.way.PortionOf(i) == algorithms.Whole
		}
	}
	if !a.FromMemory {
		return queue.Answer{}, false
	}
	l.metrics.rememberedDenials.Inc()
	for i, at := range a.Times {
		if at != 0 && demands[i] {
			l.rights.ObserveDenied(f.way.Applied[i].Bucket, a.Decided.Buckets[i], at,
				f.way.CostOf(i))
		}
	}
	return a, true
}

// fits reports whether each limit of a request denies by itself, is charged, and could admit its cost here.
func (w *way) fits() bool {
	for i, a := range w.Applied {
		if a.Limit.Shadow || a.Limit.Alternative || w.CostOf(i) > a.Capacity() || w.CostOf(i) == 0 {
			return false
		}
	}
	return true
}

// tell adds to an answer from memory that one of a request's buckets has no room.
func tell(a *queue.Answer, buckets, which int, d held.Denial) {
	if !a.FromMemory {
		a.FromMemory, a.Times = true, make([]quantity.StoreTime, buckets)
		a.Decided.Buckets = make([]algorithms.State, buckets)
		a.Decided.Answers = []algorithms.Answer{{Verdicts: make([]algorithms.Verdict, buckets)}}
	}
	a.Times[which], a.Decided.Now = d.Now, max(a.Decided.Now, d.Now)
	a.Decided.Buckets[which], a.Decided.Answers[0].Verdicts[which] = d.State, d.Verdict
}
