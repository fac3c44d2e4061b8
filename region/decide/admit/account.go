package admit

import (
	"context"
	"slices"
	"time"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/tally"
)

// reasonOrder has all reasons. The place of a reason in it is its number in a tally, so new ones
// come last: see tally.Outcome.
var reasonOrder = []Reason{WithinLimit, NoLimit, OverLimit, ExceedsRegionCapacity, Never, Denied,
	Recovering, QueueFull, StoreFailure, StoreFailureLocal, StoreFailureAllowed, InvalidRequest}

// accounts keeps what became of requests that were to be charged. Safe for concurrent use.
type accounts struct {
	metrics  *metrics
	now      func() time.Time // the node's wall clock
	fullest  fullest
	closures closures
}

// count counts what became of a request, for each limit and bucket that it concerned. A denied
// request counts for the limit that denied it. An admitted one counts for all, also for shadow
// limits; one that was repeated counts for none, and a question for none that it asks about.
func (c *accounts) count(w *way, d Decision) {
	o := c.outcome(d)
	for i, a := range w.Applied {
		c.one(a, w.CostOf(i), d, o)
	}
	c.countClasses(w, d)
}

// outcome returns what a tally keeps of a decision.
func (c *accounts) outcome(d Decision) tally.Outcome {
	o := tally.Outcome{At: time.UnixMicro(int64(d.At)), FromMemory: d.FromMemory,
		Reason: uint8(max(slices.Index(reasonOrder, d.Reason), 0))}
	if d.At == 0 {
		o.At = c.now()
	}
	return o
}

// one is count for one of the limits of a request and what it costs of that.
func (c *accounts) one(a *rules.Applied, cost quantity.Units, d Decision, o tally.Outcome) {
	switch {
	case d.Repeated:
	case d.Allowed:
		if a.Limit.Name == d.Limit {
			c.fullest.saw(d)
		}
		a.Tally.Admit(cost, o)
		c.metrics.admittedUnits.counter(a.Limit.Name, "").Add(float64(cost))
	case a.Limit.Name == d.Limit:
		c.fullest.saw(d)
		if d.opens > 0 {
			c.closures.saw(d.Limit, c.now().Add(d.opens))
		}
		a.Tally.Deny(cost, o)
		if a.Charges.Asked() && !d.FromMemory && ordinary(a) {
			c.metrics.refusedCharges.counter(d.Limit, "").Inc()
		}
		c.metrics.deniedUnits.counter(d.Limit, d.Reason).Add(float64(cost))
	}
}

// charged counts a charge of a limit that is charged always.
func (c *accounts) charged(a *rules.Applied, cost quantity.Units, d Decision) {
	if d.Repeated {
		return
	}
	c.fullest.saw(d)
	o := c.outcome(d)
	c.metrics.admittedUnits.counter(a.Limit.Name, "").Add(float64(cost - d.Owed))
	a.Tally.Admit(cost-d.Owed, o)
	if d.Owed > 0 {
		c.metrics.debtUnits.counter(a.Limit.Name, "").Add(float64(d.Owed))
		a.Tally.Deny(d.Owed, o)
	}
}

// beyond counts what was charged of a limit beyond what was reserved, and how much of that did not fit.
func (c *accounts) beyond(limit string, units, owed quantity.Units) {
	c.metrics.admittedUnits.counter(limit, "").Add(float64(units - owed))
	c.metrics.debtUnits.counter(limit, "").Add(float64(owed))
}

// LastOutcome is what became of the last request on a bucket at this node.
type LastOutcome struct {
	At         time.Time // by the store's clock, or by this node's if no store decided
	Admitted   bool
	Reason     Reason
	FromMemory bool
}

// Remembers returns the units of a bucket that the node holds to admit from without its store, and
// whether it remembers a denial.
func (l *Limiter) Remembers(a *rules.Applied) (units quantity.Units, denies bool) {
	now := l.elapsed()
	_, denies = a.Held.Denies(l.tenure.Generation(), now)
	return a.Held.Holds(now), denies
}

// PeekBucket returns the decision that a request of one unit would get which no other limit applies
// to. It charges and counts nothing. The error is an *Overload, ErrClosed, or that of ctx.
func (l *Limiter) PeekBucket(ctx context.Context, a *rules.Applied) (Decision, error) {
	f := Flow{limiter: l, next: Asks, reasked: reasks, way: way{Ask: queue.Ask{Rules: l.tenure.Rules(),
		Applied: []*rules.Applied{a}, Cost: 1, Caller: operators}.Waits(l.config.On.Now(), l.waitOf(&Request{}))}}
	for f.next != Decided {
		if f.next == Asks {
			f.Ask(ctx)
		} else {
			f.pause(ctx)
		}
	}
	d, err := f.decision()
	d.Node, d.Region = l.config.Node, l.config.Region
	return d, err
}

// operators is the caller of PeekBucket.
const operators = "operators"

// Last returns what became of the last request on a bucket at this node, and whether that is known:
// the node remembers it of the buckets that were asked for lately.
func Last(a *rules.Applied) (last LastOutcome, known bool) {
	said, known := a.Tally.Last()
	if !known || int(said.Reason) >= len(reasonOrder) {
		return LastOutcome{}, false
	}
	return LastOutcome{At: said.At, Admitted: said.Admitted, Reason: reasonOrder[said.Reason],
		FromMemory: said.FromMemory}, true
}

// LimitUnits are the units of a limit since the node's start, by what became of the requests.
type LimitUnits struct {
	Admitted, Denied float64
}

// UnitsByLimit returns the units of all limits of which requests were decided, by name.
func (l *Limiter) UnitsByLimit() map[string]LimitUnits {
	all := map[string]LimitUnits{}
	for o, n := range l.metrics.admittedUnits.totals() {
		all[o.limit] = LimitUnits{Admitted: n}
	}
	for o, n := range l.metrics.deniedUnits.totals() {
		u := all[o.limit]
		u.Denied += n
		all[o.limit] = u
	}
	return all
}
