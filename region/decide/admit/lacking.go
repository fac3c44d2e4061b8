package admit

import (
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/rights"
)

// unused returns the buckets that denied a request only because they are closed since the store
// lost data, and that this node did not use before the loss.
func (l *Limiter) unused(w way, a answered) []exchange.LostBucket {
	if a.err != nil || a.decided.Answers[a.index].Admitted {
		return nil
	}
	var all []exchange.LostBucket
	generation := l.tenure.Generation()
	for i, v := range a.decided.Answers[a.index].Verdicts {
		b, state := w.applied[i].Bucket, a.decided.Buckets[i]
		closed := v.Retry != 0 && state.Shut > a.at(i) && state.Used == 0
		if closed && !b.Recovered && !l.rights.UsedBefore(b.ID, generation) {
			all = append(all, exchange.LostBucket{Bucket: b,
				At: l.store.LostAt(store.ShardOf(w.applied[i].Target.Key))})
		}
	}
	return all
}

// lacking returns the buckets of which rights are to be borrowed for a request. It returns none if
// the request should not wait for rights.
func (w way) lacking(a answered) (lacking []rights.Lack) {
	if a.err != nil || a.decided.Answers[a.index].Admitted {
		return nil
	}
	for i, v := range a.decided.Answers[a.index].Verdicts {
		l := w.applied[i].Limit
		switch {
		case v.Retry == 0 || l.Shadow || l.Alternative && !w.allFull(a):
			continue
		case !l.Borrows() || w.costOf(i) > w.applied[i].Most():
			return nil
		}
		lacking = append(lacking, rights.Lack{Bucket: w.applied[i].Bucket,
			State: a.decided.Buckets[i]})
	}
	return lacking
}

// allFull reports whether all alternative limits of a request had no room.
func (w *way) allFull(a answered) bool {
	for i, v := range a.decided.Answers[a.index].Verdicts {
		if w.applied[i].Limit.Alternative && v.Retry == 0 {
			return false
		}
	}
	return true
}
