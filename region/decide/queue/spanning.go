package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// A request whose limits are in several shards of the store is decided shard by shard. Each part is
// charged as it is admitted. If a later part is denied or fails, what the earlier parts charged is
// given back in the cells in which it was charged. So the request is charged everywhere or nowhere,
// except for a moment in between: in that moment other requests may be denied for lack of the units
// that are then given back.
//
// A charge that cannot be given back stays, which admits fewer requests, never more. That happens if
// the store fails or the node dies meanwhile, and always to the turn of a leaky_bucket. Parts with a
// leaky_bucket therefore come last. If two shards have one, the turn in the first is lost when the
// second denies.

// Part is the part of a request that is in one shard.
type Part struct {
	Shard store.Shard
	Of    []int // places of its limits in Ask.Applied
	queue bool  // whether it has a leaky_bucket
}

// Parts returns the parts of a request in the order in which they are decided.
func (w Ask) Parts() []Part {
	var all []Part
	for i, a := range w.Applied {
		shard := store.ShardOf(a.Target.Key)
		p := slices.IndexFunc(all, func(p Part) bool { return p.Shard == shard })
		if p < 0 {
			p = len(all)
			all = append(all, Part{Shard: shard})
		}
		all[p].Of = append(all[p].Of, i)
		all[p].queue = all[p].queue || a.Limit.Algorithm == algorithms.LeakyBucket
	}
	slices.SortStableFunc(all, func(a, b Part) int { return cmp.Compare(order(a), order(b)) })
	return all
}

// Spans reports whether a request is decided shard by shard.
func (w Ask) Spans() bool { return len(w.Rules.Shards) > 1 && len(w.Parts()) > 1 }

// order sorts parts with a leaky_bucket after the others.
func order(p Part) int {
	if p.queue {
		return 1
	}
	return 0
}

// only returns a part of a request as a request of its own.
func (w Ask) only(p Part) Ask {
	own := w
	own.Applied = make([]*rules.Applied, len(p.Of))
	for n, i := range p.Of {
		own.Applied[n] = w.Applied[i]
	}
	if w.Apart() {
		own.Costs = make([]quantity.Units, len(p.Of))
		for n, i := range p.Of {
			own.Costs[n] = w.Costs[i]
		}
	}
	if w.Portions != nil {
		own.Portions = make([]quantity.PPM, len(p.Of))
		for n, i := range p.Of {
			own.Portions[n] = w.Portions[i]
		}
	}
	if w.Once != "" {
		own.Once = store.OnceKeyIn(p.Shard, w.Once)
	}
	return own
}

// decideParts asks the store to decide a request part by part, and joins the answers in the order
// of its limits. After a part was denied, the remaining parts are asked without being charged.
func (q *Queue) decideParts(ctx context.Context, w Ask, parts []Part) (Answer, error) {
	whole := Answer{Decided: algorithms.Decided{Repeated: true,
		Buckets: make([]algorithms.State, len(w.Applied)),
		Answers: []algorithms.Answer{{Admitted: true, Verdicts: make([]algorithms.Verdict,
			len(w.Applied))}}},
		Times: make([]quantity.StoreTime, len(w.Applied))}
	var charged []algorithms.Settle
	undo := func() {
		for _, c := range charged {
			q.takeBack(ctx, c)
		}
		if len(charged) > 0 {
			for _, a := range w.Applied { // what was denied meanwhile may fit now
				a.Held.Forget(q.store.Latest())
			}
		}
		charged = nil
	}
	for _, p := range parts {
		own := w.only(p)
		own.Commit = w.Commit && whole.Decided.Answers[0].Admitted
		a, err := q.ask(ctx, own)
		denied := !whole.Decided.Answers[0].Admitted
		switch {
		case err != nil:
			undo()
			return Answer{}, err
		case a.Err != nil && denied: // the denial stands without this answer
			whole.unheard(p, w.Applied)
			continue
		case a.Err != nil:
			undo()
			a.Only = own.Applied
			return a, nil
		}
		if own.Commit && a.Decided.TooOften && a.Own().Admitted {
			own.Once = "" // the store keeps what it remembers under it
			charged = append(charged, q.chargesOf(own, p.Shard, a)...)
			undo()
			return q.decideAnew(ctx, w, parts)
		}
		whole.add(p, a)
		if !whole.Decided.Answers[0].Admitted {
			undo()
		} else if own.Commit && !a.Decided.Repeated { // a charge of an earlier attempt stays
			charged = append(charged, q.chargesOf(own, p.Shard, a)...)
		}
	}
	return whole, nil
}

// decideAnew decides a request that was sent again too often as a request without an id. Each shard
// counts the repeats itself, so all parts have to be charged anew, or none.
func (q *Queue) decideAnew(ctx context.Context, w Ask, parts []Part) (Answer, error) {
	w.Once = ""
	a, err := q.decideParts(ctx, w, parts)
	a.Decided.TooOften = true
	return a, err
}

// add copies the answer to a part to the places of its limits.
func (a *Answer) add(p Part, own Answer) {
	d, answer := &a.Decided, own.Own()
	if own.Decided.Repeated && a.Earlier == nil {
		a.Earlier = make([]bool, len(d.Buckets))
	}
	for n, i := range p.Of {
		if own.Decided.Repeated {
			a.Earlier[i] = true
		}
		d.Buckets[i], d.Answers[0].Verdicts[i], a.Times[i] = own.Decided.Buckets[n],
			answer.Verdicts[n], own.Decided.Now
	}
	d.Answers[0].Admitted = d.Answers[0].Admitted && answer.Admitted
	d.Repeated = d.Repeated && own.Decided.Repeated
	if d.Now == 0 || own.Decided.Now < d.Now {
		d.Now = own.Decided.Now
	}
}

// unheard fills in what is known of a part that did not answer: the store's time by the other
// parts, the cell at that time, and the entitlement. Such a limit may still decide, if it can never
// admit as much. Without this the decision could show a time in 1970.
func (a *Answer) unheard(p Part, applied []*rules.Applied) {
	for _, i := range p.Of {
		limit := applied[i]
		a.Times[i] = a.Decided.Now
		a.Decided.Buckets[i] = algorithms.State{Cell: limit.Bucket.Cells().At(a.Decided.Now),
			Entitlement: limit.Target.Terms.Entitlement}
	}
}

// chargesOf returns the calls that take back the charge of a part: one for each cost.
func (q *Queue) chargesOf(own Ask, shard store.Shard, a Answer) (all []algorithms.Settle) {
	for i, v := range a.Own().Verdicts {
		cost := own.CostOf(i)
		if v.Retry != 0 || cost == 0 { // a shadow limit without room was not charged, and a question is not
			continue
		}
		n := slices.IndexFunc(all, func(c algorithms.Settle) bool { return c.Cost == cost })
		if n < 0 {
			n = len(all)
			all = append(all, algorithms.Settle{
				Fence: algorithms.Fence{Epoch: own.Rules.Epoch}, At: a.Decided.Now, Cost: cost,
				Receipt: store.SettleKey(shard, fmt.Sprintf("%s:%d", q.life, q.undone.Add(1))),
				Once:    cmp.Or(own.Once, store.OnceKey(shard, "none"))})
		}
		charged, state := algorithms.Charge{Target: own.Applied[i].Target.Target},
			a.Decided.Buckets[i]
		charged.ExistsUntil, charged.Cell = state.ExistsUntil, state.Cell
		all[n].Charges = append(all[n].Charges, charged)
	}
	return all
}

// takeBack gives back what a part charged, also if the caller no longer waits. If that fails,
// the charge stays.
func (q *Queue) takeBack(ctx context.Context, c algorithms.Settle) {
	if len(c.Charges) == 0 {
		return
	}
	if _, err := q.store.Settle(context.WithoutCancel(ctx), c); err != nil {
		q.log.Debug("a part of a denied request stays charged", "err", err)
	}
}
