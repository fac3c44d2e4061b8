package admit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
)

// A client may hold units itself, as a node holds a chunk: it takes them, admits requests from them
// for a moment, and gives back what is left. The node remembers nothing of it. What the client must
// present to give units back is a receipt of their charge.

// ErrExact says that a limit that applies to a request admits nothing without the store.
var ErrExact = errors.New("no units can be taken")

// Take is a client's request for units to admit from by itself.
type Take struct {
	Domain      string
	Descriptors map[string]string
	Units       quantity.Units // at most so many, up to 2^51; 0: none, the client only reports
	// Admitted and Denied are what the client decided by itself since its last call, in units, up
	// to 2^51 each.
	Admitted, Denied quantity.Units
	Caller           string // as Request.Caller
}

// Taken answers a Take.
type Taken struct {
	Units quantity.Units // charged; 0: none, and nothing else is set
	// Decision is the decision to charge them.
	Decision Decision
	// SpendWithin is how long the client may admit from them, from before it sent its request.
	SpendWithin time.Duration
	// Receipt is what Settle takes. Empty: the units cannot be given back.
	Receipt string
}

// Validate returns an *invalid.Field for the first problem of a request, nil if there is none.
func (t Take) Validate() error {
	for _, amount := range []struct {
		field string
		units quantity.Units
	}{{"units", t.Units}, {"admitted", t.Admitted}, {"denied", t.Denied}} {
		if amount.units < 0 || amount.units > 1<<51 {
			return invalid.Fieldf(amount.field, "must be a whole number of units from 0 to 2251799813685248")
		}
	}
	return t.request(1).Validate()
}

// request returns a request of a cost on the same buckets.
func (t Take) request(cost quantity.Units) Request {
	return Request{Domain: t.Domain, Descriptors: t.Descriptors, Cost: cost, Caller: t.Caller}
}

// Take charges units for a client to admit from by itself: at most those it asks for, and of each
// limit at most the part that a node would take. It charges none if that is less than
// held.Smallest, if the node has not heard from the store what is free, or if the store does not
// charge them at once; then the client asks Check. The error is an *invalid.Field, ErrClosed, that of
// ctx, or wraps ErrExact.
func (l *Limiter) Take(ctx context.Context, t Take) (Taken, error) {
	if err := t.Validate(); err != nil {
		return Taken{}, err
	}
	w := l.prepare(t.request(max(t.Units, 1)), true, nil)
	if w.stray != "" {
		return Taken{}, fmt.Errorf("%w: descriptor %s meets no limit's match; ask Check", ErrExact, w.stray)
	}
	if err := takeable(w.Applied); err != nil {
		return Taken{}, err
	}
	if err := bounded(w.Applied); err != nil {
		return Taken{}, err
	}
	l.reported(t, w.Applied)
	w.Cost = t.part(w.Applied, l.config.Nodes)
	if w.Cost < held.Smallest || w.Rules.Serves() != nil {
		return Taken{}, nil
	}
	w.Chunk = true
	handedOver(ctx)
	said, err := l.queue.Decide(ctx, w.Ask)
	switch {
	case queue.IsOverload(err):
		return Taken{}, nil
	case err != nil:
		return Taken{}, err
	case !said.Admitted():
		return Taken{}, nil
	}
	l.metrics.takenUnits.Add(float64(w.Cost))
	d := l.judge(&w, said)
	l.accounts.count(&w, d)
	return Taken{Units: w.Cost, Decision: l.sign(d),
		SpendWithin: spendWithin(w.Applied, said),
		Receipt:     l.receipts.Give(w.Ask, said)}, nil
}

// takeable returns an error that wraps ErrExact unless a limit applies, and all say consistency:
// prefetch.
func takeable(all []*rules.Applied) error {
	if len(all) == 0 {
		return fmt.Errorf("%w: no limit applies to the request; ask Check", ErrExact)
	}
	for _, a := range all {
		if a.Limit.Consistency != policy.Prefetch {
			return fmt.Errorf(
				"%w: limit %s is exact, as it does not say consistency: prefetch; ask Check",
				ErrExact, a.Limit.Name)
		}
	}
	return nil
}

// reported counts what a client decided by itself. What it admitted was charged before and counted
// then. What it denied is demand of the limits that this node, too, remembers to deny.
func (l *Limiter) reported(t Take, all []*rules.Applied) {
	l.metrics.clientAdmitted.Add(float64(t.Admitted))
	l.metrics.clientDenied.Add(float64(t.Denied))
	if t.Denied == 0 {
		return
	}
	generation, now := l.tenure.Generation(), l.elapsed()
	for _, a := range all {
		if d, denies := a.Held.Denies(generation, now); denies {
			l.rights.ObserveDeniedUnits(a.Bucket, d.State, d.Now, t.Denied)
			denied := Decision{Limit: a.Limit.Name, Reason: OverLimit, At: d.Now, FromMemory: true}
			l.accounts.one(a, t.Denied, denied, l.accounts.outcome(denied))
		}
	}
}

// part returns the most units, up to those asked for, that a client may take of all limits.
func (t Take) part(all []*rules.Applied, nodes int) quantity.Units {
	asked := t.Units
	for _, a := range all {
		asked = min(asked, a.Held.Part(max(nodes, 1)))
	}
	return asked
}

// spendWithin returns how long units may be spent that the store has just charged: until the first
// of the cells ends.
func spendWithin(all []*rules.Applied, a queue.Answer) time.Duration {
	within := held.Life
	for i, one := range all {
		ends := one.Target.Terms.Opens(a.Decided.Buckets[i].Cell + 1)
		within = min(within, quantity.Duration(ends.Sub(a.At(i))))
	}
	return within
}
