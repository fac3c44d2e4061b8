package admit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// A request whose limits are in several shards of the store is decided shard by shard. Each part is
// charged as it is admitted. If a later part is denied or fails, what the earlier parts charged is
// refunded in the cells in which it was charged. So the request is charged everywhere or nowhere,
// except for a moment in between: in that moment other requests may be denied for lack of the units
// that are then given back.
//
// A charge that cannot be refunded stays, which admits fewer requests, never more. That happens if
// the store fails or the node dies during the refund, and always to the turn of a leaky_bucket.
// Parts with a leaky_bucket therefore come last. If two shards have one, the turn in the first is
// lost when the second denies.

// part is the part of a request that is in one shard.
type part struct {
	shard store.Shard
	of    []int // indexes into the request's list of limits
	queue bool  // whether it has a leaky_bucket
}

// parts returns the parts of a request in the order in which they are decided.
func (w waiting) parts() []part {
	var all []part
	for i, a := range w.applied {
		shard := store.ShardOf(a.Target.Key)
		p := slices.IndexFunc(all, func(p part) bool { return p.shard == shard })
		if p < 0 {
			p = len(all)
			all = append(all, part{shard: shard})
		}
		all[p].of = append(all[p].of, i)
		all[p].queue = all[p].queue || a.Limit.Algorithm == algorithms.LeakyBucket
	}
	slices.SortStableFunc(all, func(a, b part) int { return cmp.Compare(order(a), order(b)) })
	return all
}

// spans reports whether a request is decided shard by shard.
func (w waiting) spans() bool { return len(w.rules.Shards) > 1 && len(w.parts()) > 1 }

// order sorts parts with a leaky_bucket after the others.
func order(p part) int {
	if p.queue {
		return 1
	}
	return 0
}

// only returns a part of a request as a request of its own.
func (w waiting) only(p part) waiting {
	own := w
	own.applied = make([]*rules.Applied, len(p.of))
	for n, i := range p.of {
		own.applied[n] = w.applied[i]
	}
	if w.apart() {
		own.costs = make([]quantity.Units, len(p.of))
		for n, i := range p.of {
			own.costs[n] = w.costs[i]
		}
	}
	if w.once != "" {
		own.once = onceIn(p.shard, w.once)
	}
	return own
}

// onceIn returns the key in another shard that corresponds to a key of store.OnceKey.
func onceIn(shard store.Shard, once string) string {
	return store.OnceKey(shard, strings.TrimPrefix(once, store.OnceKey(store.ShardOf(once), "")))
}

// decideParts asks the store to decide a request part by part, and joins the answers in the order
// of its limits. After a part was denied, the remaining parts are asked without being charged.
func (q *Queue) decideParts(ctx context.Context, w waiting, parts []part) (answered, error) {
	whole := answered{decided: algorithms.Decided{Repeated: true,
		Buckets: make([]algorithms.State, len(w.applied)),
		Answers: []algorithms.Answer{{Admitted: true, Verdicts: make([]algorithms.Verdict,
			len(w.applied))}}},
		times: make([]quantity.StoreTime, len(w.applied))}
	var charged []algorithms.Refund
	undo := func() {
		for _, c := range charged {
			q.takeBack(ctx, c)
		}
		if len(charged) > 0 {
			for _, a := range w.applied { // what was denied meanwhile may fit now
				a.Held.Forget(q.store.Latest())
			}
		}
		charged = nil
	}
	for _, p := range parts {
		own := w.only(p)
		own.commit = w.commit && whole.decided.Answers[0].Admitted
		a, err := q.ask(ctx, own)
		denied := !whole.decided.Answers[0].Admitted
		switch {
		case err != nil:
			undo()
			return answered{}, err
		case a.err != nil && denied: // the denial stands without this answer
			whole.unheard(p, w.applied)
			continue
		case a.err != nil:
			undo()
			a.part = own.applied
			return a, nil
		}
		if own.commit && a.decided.TooOften && a.decided.Answers[a.index].Admitted {
			own.once = "" // the store keeps what it remembers under it
			charged = append(charged, q.chargesOf(own, p.shard, a)...)
			undo()
			return q.decideAnew(ctx, w, parts)
		}
		whole.add(p, a)
		if !whole.decided.Answers[0].Admitted {
			undo()
		} else if own.commit && !a.decided.Repeated { // a charge of an earlier attempt stays
			charged = append(charged, q.chargesOf(own, p.shard, a)...)
		}
	}
	return whole, nil
}

// decideAnew decides a request that was sent again too often as a request without an id. Each shard
// counts the repeats itself, so all parts have to be charged anew, or none.
func (q *Queue) decideAnew(ctx context.Context, w waiting, parts []part) (answered, error) {
	w.once = ""
	a, err := q.decideParts(ctx, w, parts)
	a.decided.TooOften = true
	return a, err
}

// add copies the answer to a part to the places of its limits.
func (a *answered) add(p part, own answered) {
	d, answer := &a.decided, own.decided.Answers[own.index]
	if own.decided.Repeated && a.earlier == nil {
		a.earlier = make([]bool, len(d.Buckets))
	}
	for n, i := range p.of {
		if own.decided.Repeated {
			a.earlier[i] = true
		}
		d.Buckets[i], d.Answers[0].Verdicts[i], a.times[i] = own.decided.Buckets[n],
			answer.Verdicts[n], own.decided.Now
	}
	d.Answers[0].Admitted = d.Answers[0].Admitted && answer.Admitted
	d.Repeated = d.Repeated && own.decided.Repeated
	if d.Now == 0 || own.decided.Now < d.Now {
		d.Now = own.decided.Now
	}
}

// unheard fills in what is known of a part that did not answer: the store's time by the other
// parts, the cell at that time, and the entitlement. Such a limit may still decide, if it can never
// admit as much. Without this the decision could show a time in 1970.
func (a *answered) unheard(p part, applied []*rules.Applied) {
	for _, i := range p.of {
		limit := applied[i]
		a.times[i] = a.decided.Now
		a.decided.Buckets[i] = algorithms.State{Cell: limit.Bucket.Cells().At(a.decided.Now),
			Entitlement: limit.Target.Terms.Entitlement}
	}
}

// chargesOf returns the refund calls that take back the charge of a part: one for each cost.
func (q *Queue) chargesOf(own waiting, shard store.Shard, a answered) (all []algorithms.Refund) {
	for i, v := range a.decided.Answers[a.index].Verdicts {
		if v.Retry != 0 { // a shadow limit without room was not charged
			continue
		}
		cost := own.costOf(i)
		n := slices.IndexFunc(all, func(c algorithms.Refund) bool { return c.Cost == cost })
		if n < 0 {
			n = len(all)
			all = append(all, algorithms.Refund{
				Fence: algorithms.Fence{Epoch: own.rules.Epoch}, At: a.decided.Now, Cost: cost,
				Receipt: store.RefundKey(shard, fmt.Sprintf("%s:%d", q.life, q.undone.Add(1))),
				Once:    cmp.Or(own.once, store.OnceKey(shard, "none"))})
		}
		charged, state := algorithms.Charge{Target: own.applied[i].Target.Target},
			a.decided.Buckets[i]
		charged.ExistsUntil, charged.Cell = state.ExistsUntil, state.Cell
		all[n].Charges = append(all[n].Charges, charged)
	}
	return all
}

// takeBack refunds what a part charged, also if the caller no longer waits. If the refund fails,
// the charge stays.
func (q *Queue) takeBack(ctx context.Context, c algorithms.Refund) {
	if len(c.Charges) == 0 {
		return
	}
	if _, err := q.store.Refund(context.WithoutCancel(ctx), c); err != nil {
		q.log.Debug("a part of a denied request stays charged", "err", err)
	}
}
