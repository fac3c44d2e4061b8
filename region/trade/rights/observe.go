package rights

import (
	"context"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/rules"
)

// Observe adds decisions on requests to the next report. All requests were for the same buckets.
// c is the call that d answers. Observe runs on the request path, so it does nothing else.
func (e *Engine) Observe(applied []*rules.Applied, c *algorithms.Decide, d algorithms.Decided) {
	if e.matters(applied, d) {
		e.observe(applied, c, d)
	}
	for i, a := range applied {
		e.seen.noteHashed(a.Bucket.ID, a.Hash, &a.Target.Terms, d.Buckets[i], d.Now)
	}
}

// ExistsFound is Exists for a bucket that a request met. It takes less time.
func (e *Engine) ExistsFound(a *rules.Applied) (until quantity.StoreTime) {
	return e.seen.beginHashed(a.Bucket, a.Hash)
}

// aloneEvery is how often the machine of a lone region hears what was decided, in microseconds: it
// has nobody to trade with, but tells how far the store's clock is ahead.
const aloneEvery = 1_000_000

// matters reports whether the machine should hear of decisions.
func (e *Engine) matters(applied []*rules.Applied, d algorithms.Decided) bool {
	if len(applied[0].Bucket.Entitlements) > 1 {
		return true
	}
	for i := range d.Buckets {
		if d.Buckets[i].Doubt > 0 { // it has the other nodes asked what they used
			return true
		}
	}
	told := e.toldAlone.Load()
	return int64(d.Now) >= told+aloneEvery && e.toldAlone.CompareAndSwap(told, int64(d.Now))
}

func (e *Engine) observe(applied []*rules.Applied, c *algorithms.Decide, d algorithms.Decided) {
	e.mu.Lock()
	for i, a := range applied {
		if c.PerBucket && c.Costs[i] == 0 {
			e.observeQuestion(a, c, d, i)
			continue
		}
		o := e.observing(a.Bucket)
		o.State, o.Now = d.Buckets[i], d.Now
		for n, answer := range d.Answers {
			switch cost := c.Cost(n, i); {
			// No region could ever admit it, so it is no demand.
			case cost > a.Most() && !c.Buckets[i].Always:
			case c.Buckets[i].Always: // what is owed is covered as such, and is no demand
				o.Admit(cost-answer.Verdicts[i].Owed, c.Part(n, i))
			case answer.Admitted && answer.Verdicts[i].Retry == 0:
				o.Admit(cost, c.Part(n, i))
			case answer.Verdicts[i].Retry != 0:
				o.Deny(cost, c.Part(n, i))
			}
		}
	}
	e.mu.Unlock()
	e.drains()
}

// observeQuestion adds to the next report that a bucket was asked about before a use. If it is charged
// always, a denied question is demand of a usual charge; an admitted one is charged afterwards. The
// caller holds the lock.
func (e *Engine) observeQuestion(a *rules.Applied, c *algorithms.Decide, d algorithms.Decided, place int) {
	if a.Limit.Charge != policy.ChargeAlways {
		return
	}
	o := e.observing(a.Bucket)
	o.State, o.Now, o.Asked = d.Buckets[place], d.Now, true
	if d.Answers[0].Verdicts[place].Retry != 0 {
		o.Deny(min(a.Charges.Usual(), a.Most()), c.Part(0, place))
	}
}

// ObserveDenied adds a denied request, which may use all that the region holds, to the next report. The
// node denied it by what it remembers of the bucket: the state at a store time.
func (e *Engine) ObserveDenied(b *exchange.Bucket, state algorithms.State, now quantity.StoreTime,
	cost quantity.Units) {
	e.observeDenied(b, state, now, func(o *exchange.Observed) { o.Deny(cost, algorithms.Whole) })
}

// ObserveDeniedUnits is ObserveDenied for so many requests of a unit each.
func (e *Engine) ObserveDeniedUnits(b *exchange.Bucket, state algorithms.State, now quantity.StoreTime,
	units quantity.Units) {
	e.observeDenied(b, state, now, func(o *exchange.Observed) { o.DenyUnits(units) })
}

func (e *Engine) observeDenied(b *exchange.Bucket, state algorithms.State, now quantity.StoreTime,
	add func(*exchange.Observed)) {
	if len(b.Entitlements) < 2 {
		return
	}
	e.mu.Lock()
	o := e.observing(b)
	if o.Now == 0 { // else the store has answered since
		o.State, o.Now = state, now
	}
	add(o)
	e.mu.Unlock()
	e.drains()
}

// observing returns what is to be reported of a bucket. The caller holds the lock.
func (e *Engine) observing(b *exchange.Bucket) *exchange.Observed {
	o := e.observed[b.ID]
	if o == nil {
		o = &exchange.Observed{}
		e.observed[b.ID] = o
	}
	o.Bucket = b
	return o
}

// drains makes Run report soon.
func (e *Engine) drains() { repeat.Signal(e.drain) }

// report tells the machine what was decided since the last report.
func (s *Stepper) report(ctx context.Context) {
	if all := s.Observations(); len(all) > 0 {
		s.step(ctx, all)
	}
}

// Observations returns what was decided since the last call, in no order.
func (e *Engine) Observations() exchange.Report {
	e.mu.Lock()
	observed := e.observed
	e.observed = make(map[string]*exchange.Observed, len(observed))
	e.mu.Unlock()
	all := make(exchange.Report, 0, len(observed))
	for _, o := range observed {
		all = append(all, *o)
	}
	return all
}
