package admit

import (
	"slices"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/local"
	"github.com/quotad/quotad/region/memory/rules"
)

// withoutStore decides a request by the on_store_failure of its limits. If one limit says deny, the
// request is denied. Otherwise every limit that says local must have room in this node's part, also
// an alternative one.
func (l *Limiter) withoutStore(w *way) Decision {
	if a := w.failsWithStore(); a != nil {
		return l.describe(Decision{Reason: StoreFailure}, a)
	}
	charges := w.localCharges()
	if len(charges) == 0 {
		return l.describe(Decision{Allowed: true, Reason: StoreFailureAllowed}, w.Applied[0])
	}
	s := l.local.Spend(charges, w.Commit)
	d := Decision{Allowed: s.Admitted, Reason: StoreFailureLocal, Remaining: s.Left, ResetAfter: s.Reset,
		Class: w.class(w.placeOf(charges[s.Of].Applied)), Kept: s.Kept}
	switch {
	case s.Never:
		d.RetryAfter = -1
	case !s.Admitted:
		d.RetryAfter = min(s.Reset, unknownWithin)
	}
	return l.describe(d, charges[s.Of].Applied)
}

// placeOf returns the place of one of the request's limits.
func (w *way) placeOf(a *rules.Applied) int { return slices.Index(w.Applied, a) }

// failsWithStore returns the first limit of a request that says on_store_failure: deny; nil: none
// does.
func (w *way) failsWithStore() *rules.Applied {
	for _, a := range w.Applied {
		if !a.Limit.Shadow && a.Limit.OnStoreFailure == policy.StoreFailureDeny {
			return a
		}
	}
	return nil
}

// localCharges returns what the request is to be charged without the store: its costs of the limits
// that say on_store_failure: local, without shadow limits. It is charged nothing if a limit says deny.
func (w *way) localCharges() (all []local.Charge) {
	if w.failsWithStore() != nil {
		return nil
	}
	for i, a := range w.Applied {
		if !a.Limit.Shadow && a.Limit.OnStoreFailure == policy.StoreFailureLocal {
			all = append(all, local.Charge{Applied: a, Cost: w.CostOf(i), Part: w.PortionOf(i)})
		}
	}
	return all
}
