package admit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/rules"
	"github.com/quotad/quotad/region/store"
)

// A request whose limits lie in several shards of the store is decided shard by shard, each part charged as it is
// admitted. Where a later part is denied or fails, what the earlier ones charged is refunded in the cells it was charged
// in. So the request as a whole is charged everywhere or, but for the moment in between, nowhere: in that moment others
// may be denied what is given back. What cannot be refunded stays charged, which admits less, never more: a store that
// fails then, a node that dies, and a turn of a leaky_bucket. Queues therefore come last, but where two shards have
// queues, the turn in the first is lost when the second denies.

// part is what of a request lies in one shard.
type part struct {
	shard store.Shard
	of    []int // places in the request's list of limits
	queue bool  // has a leaky_bucket
}

// parts returns a request's parts in the order in which they are decided.
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

// spans says whether a request is decided shard by shard.
func (w waiting) spans() bool { return len(w.rules.Shards) > 1 && len(w.parts()) > 1 }

func order(p part) int {
	if p.queue {
		return 1
	}
	return 0
}

// only returns the part of a request as a request of its own.
func (w waiting) only(p part) waiting {
	own := w
	own.applied = make([]rules.Applied, len(p.of))
	for n, i := range p.of {
		own.applied[n] = w.applied[i]
	}
	if w.once != "" {
		own.once = onceIn(p.shard, w.once)
	}
	return own
}

// onceIn returns what a key of OnceKey is called in another shard.
func onceIn(shard store.Shard, once string) string {
	return store.OnceKey(shard, strings.TrimPrefix(once, store.OnceKey(store.ShardOf(once), "")))
}

// decideParts has the store decide a request part by part and puts the answers together, in the order of its limits.
// Once a part is denied, the others are only asked what they would say.
func (l *Limiter) decideParts(ctx context.Context, w waiting, parts []part) (answered, error) {
	whole := answered{decided: algorithms.Decided{Head: algorithms.Head{Status: algorithms.StatusOK}, Repeated: true,
		Buckets: make([]algorithms.State, len(w.applied)),
		Answers: []algorithms.Answer{{Admitted: true, Verdicts: make([]algorithms.Verdict, len(w.applied))}}},
		times: make([]int64, len(w.applied))}
	var charged []algorithms.Refund
	undo := func() {
		for _, c := range charged {
			l.takeBack(ctx, c)
		}
		charged = nil
	}
	for _, p := range parts {
		own := w.only(p)
		own.commit = w.commit && whole.decided.Answers[0].Admitted
		a, err := l.ask(ctx, own)
		denied := !whole.decided.Answers[0].Admitted
		switch {
		case err != nil:
			undo()
			return answered{}, err
		case !a.ok() && denied: // what denied is enough
			whole.unheard(p)
			continue
		case !a.ok():
			undo()
			a.part = own.applied
			return a, nil
		}
		if own.commit && a.decided.TooOften && a.decided.Answers[a.index].Admitted {
			own.once = "" // what is remembered stays
			charged = append(charged, l.chargeOf(own, p.shard, a))
			undo()
			return l.decideAnew(ctx, w, parts)
		}
		whole.add(p, a)
		if !whole.decided.Answers[0].Admitted {
			undo()
		} else if own.commit && !a.decided.Repeated { // what was charged before stays
			charged = append(charged, l.chargeOf(own, p.shard, a))
		}
	}
	return whole, nil
}

// decideAnew decides a request that was sent again too often as one without an id. Each shard counts for itself how
// often it was, so that all parts are charged anew or none.
func (l *Limiter) decideAnew(ctx context.Context, w waiting, parts []part) (answered, error) {
	w.once = ""
	a, err := l.decideParts(ctx, w, parts)
	a.decided.TooOften = true
	return a, err
}

// add puts the answer to a part in its places.
func (a *answered) add(p part, own answered) {
	d, answer := &a.decided, own.decided.Answers[own.index]
	for n, i := range p.of {
		d.Buckets[i], d.Answers[0].Verdicts[i], a.times[i] = own.decided.Buckets[n], answer.Verdicts[n], own.decided.Now
	}
	d.Answers[0].Admitted = d.Answers[0].Admitted && answer.Admitted
	d.Repeated = d.Repeated && own.decided.Repeated
	if d.Now == 0 || own.decided.Now < d.Now {
		d.Now = own.decided.Now
	}
}

// unheard gives the places of a part that did not answer a time, so that nothing is told of another century.
func (a *answered) unheard(p part) {
	for _, i := range p.of {
		a.times[i] = a.decided.Now
	}
}

// chargeOf returns what takes back the charge of a part.
func (l *Limiter) chargeOf(own waiting, shard store.Shard, a answered) algorithms.Refund {
	c := algorithms.Refund{Fence: algorithms.Fence{Epoch: own.rules.Epoch}, At: a.decided.Now, Cost: own.cost,
		Receipt: store.RefundKey(shard, fmt.Sprintf("%s:%d", l.life, l.receipts.Add(1))),
		Once:    cmp.Or(own.once, store.OnceKey(shard, "none"))}
	for i, v := range a.decided.Answers[a.index].Verdicts {
		if v.Retry == 0 { // a shadow limit that had no room was not charged
			charged, state := algorithms.Charge{Target: own.applied[i].Target.Target}, a.decided.Buckets[i]
			charged.ExistsUntil, charged.Cell = state.ExistsUntil, state.Cell
			c.Charges = append(c.Charges, charged)
		}
	}
	return c
}

// takeBack refunds what a part charged, whether or not its caller still waits. If that fails, it stays charged.
func (l *Limiter) takeBack(ctx context.Context, c algorithms.Refund) {
	if len(c.Charges) == 0 {
		return
	}
	done, err := l.store.Refund(context.WithoutCancel(ctx), c)
	if err == nil && done.Status != algorithms.StatusOK {
		err = fmt.Errorf("refund: %s", done.Status)
	}
	if err != nil {
		l.log.Debug("a part of a denied request stays charged", "err", err)
	}
}
