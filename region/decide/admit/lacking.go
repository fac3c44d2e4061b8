package admit

import (
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/rights"
)

// unused returns the buckets that denied the request only because they are closed since the store
// lost data, and that this node did not use before the loss.
func (f *Flow) unused() []exchange.LostBucket {
	l, w, a := f.limiter, &f.way, &f.said
	if a.Err != nil || a.Own().Admitted {
		return nil
	}
	var all []exchange.LostBucket
	generation := l.tenure.Generation()
	for i, v := range a.Own().Verdicts {
		b, state := w.Applied[i].Bucket, a.Decided.Buckets[i]
		closed := v.Retry != 0 && state.Shut > a.At(i) && state.Used == 0
		if closed && !b.Recovered && !l.rights.UsedBefore(b.ID, generation) {
			all = append(all, exchange.LostBucket{Bucket: b,
				At: l.store.LostAt(store.ShardOf(w.Applied[i].Target.Key))})
		}
	}
	return all
}

// borrow makes the request wait for rights of other regions, if each limit that denied it borrows
// on exhaustion and could ever admit its cost.
func (f *Flow) borrow() {
	lacking := f.way.lacking(&f.said)
	if !f.commit || len(lacking) == 0 || f.pauses(lacking) {
		return
	}
	if wait := f.limiter.rights.Borrow(lacking, f.way.lacks(), f.said.Decided.Now); wait != nil {
		f.borrowed = true
		f.waits(rightsLent, wait)
	}
}

// pauses makes the request wait, once, until the cells end in which tokens would come too late for it.
// It returns false if there is nothing to wait for, or the caller does not wait that long.
func (f *Flow) pauses(lacking []rights.Lack) bool {
	if f.paused > 0 {
		return false
	}
	wait, rest := f.limiter.rights.Pause(lacking, f.way.lacks(), f.said.Decided.Now)
	if f.paused = rest; wait == nil {
		return false
	}
	if !f.expires.IsZero() && f.limiter.config.On.Now().Add(rest+f.limiter.rights.Patience()).After(f.expires) {
		wait.Leave()
		return false
	}
	f.waits(cellEnds, wait)
	return true
}

// lacking returns the buckets of which rights are to be borrowed for a request. It returns none if
// the request should not wait for rights.
func (w *way) lacking(a *queue.Answer) (lacking []rights.Lack) {
	if a.Err != nil || a.Own().Admitted {
		return nil
	}
	for i, v := range a.Own().Verdicts {
		l := w.Applied[i].Limit
		switch {
		case v.Retry == 0 || l.Shadow || l.Alternative && !w.allFull(a):
			continue
		case w.PortionOf(i) < algorithms.Whole: // units of its cost are too few for a part of all
			return nil
		case !l.Borrows() || w.CostOf(i) == 0 && l.Charge != policy.ChargeAlways || w.CostOf(i) > w.Applied[i].Most():
			return nil
		}
		lacking = append(lacking, rights.Lack{Bucket: w.Applied[i].Bucket,
			State: a.Decided.Buckets[i]})
	}
	return lacking
}

// lacks returns how many units the request waits for: what it costs, or of what it asks about what a
// charge usually costs.
func (w *way) lacks() quantity.Units {
	units := w.Cost
	for i, a := range w.Applied {
		if w.CostOf(i) == 0 {
			units = max(units, min(a.Charges.Usual(), a.Most()))
		}
	}
	return units
}

// allFull reports whether all alternative limits of a request had no room.
func (w *way) allFull(a *queue.Answer) bool {
	for i, v := range a.Own().Verdicts {
		if w.Applied[i].Limit.Alternative && v.Retry == 0 {
			return false
		}
	}
	return true
}
