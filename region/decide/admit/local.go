package admit

import (
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

// withoutStore decides a request by the on_store_failure of its limits. If one limit says deny, the
// request is denied. Otherwise every limit that says local must have room in this node's part, also
// an alternative one.
func (l *Limiter) withoutStore(w *way) Decision {
	all, commit := w.Applied, w.Commit
	d := l.describe(Decision{Allowed: true, Reason: StoreFailureAllowed}, all[0])
	if a := w.failsWithStore(); a != nil {
		return l.describe(Decision{Reason: StoreFailure}, a)
	}
	type charge struct {
		*rules.Applied
		cost   quantity.Units
		window quantity.Cell
	}
	var charged []charge
	var units quantity.Units
	now, local := l.config.Now(), w.inLocalPart()
	// All limits are checked before any is charged, so that a denial leaves no record and no claim
	// of the limits that had room.
	if commit && len(local) > 1 {
		claims, at, denied := l.roomLocally(w, local, now)
		if denied != nil {
			return l.deniedLocally(all[at], *denied)
		}
		l.fallback.claimAll(claims)
	}
	for _, i := range local {
		a, cost := all[i], w.CostOf(i)
		m := l.fallback.take(a, cost, commit, now)
		if !m.room {
			for _, c := range charged {
				l.fallback.giveBack(c.Applied, c.cost, c.window)
			}
			return l.deniedLocally(a, m)
		}
		if commit {
			charged, units = append(charged, charge{a, cost, m.window}), units+cost
		}
		if d.Reason != StoreFailureLocal || m.left < d.Remaining {
			d = l.describe(Decision{Allowed: true, Reason: StoreFailureLocal, Remaining: m.left,
				ResetAfter: m.reset}, a)
		}
	}
	l.fallback.Admitted(units)
	return d
}

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

// roomLocally says which limit of a request, if any, has no room in this node's part, and else what
// is to be claimed before the request is charged.
func (l *Limiter) roomLocally(w *way, local []int, now time.Time) (claims []claiming, at int,
	denied *metered) {
	for _, i := range local {
		m := l.fallback.take(w.Applied[i], w.CostOf(i), false, now)
		if !m.room {
			return nil, i, &m
		}
		if m.fresh != nil {
			claims = append(claims, *m.fresh)
		}
	}
	return claims, 0, nil
}

// claimTogether claims in one commit what several requests will spend without the store. Otherwise
// each would wait for a commit of its own.
func (l *Limiter) claimTogether(all []*way) {
	var claims []claiming
	now := l.config.Now()
	for _, w := range all {
		if w.failsWithStore() == nil {
			fresh, _, _ := l.roomLocally(w, w.inLocalPart(), now)
			claims = append(claims, fresh...)
		}
	}
	l.fallback.claimAll(claims)
}

// inLocalPart returns the places of the limits that say on_store_failure: local, without shadow
// limits.
func (w *way) inLocalPart() (local []int) {
	for i, a := range w.Applied {
		if !a.Limit.Shadow && a.Limit.OnStoreFailure == policy.StoreFailureLocal {
			local = append(local, i)
		}
	}
	return local
}

// deniedLocally returns the denial of a limit whose part has no room.
func (l *Limiter) deniedLocally(a *rules.Applied, m metered) Decision {
	denied := Decision{Reason: StoreFailureLocal, Remaining: m.left, ResetAfter: m.reset,
		RetryAfter: min(m.reset, unknownWithin)}
	if m.never {
		denied.RetryAfter = -1
	}
	return l.describe(denied, a)
}
