package admit

import (
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/rules"
)

// withoutStore decides a request by the on_store_failure of its limits. If one limit says deny, the
// request is denied. Otherwise every limit that says local must have room in this node's part, also
// an alternative one.
func (l *Limiter) withoutStore(w *waiting) Decision {
	all, commit := w.applied, w.commit
	d := l.describe(Decision{Allowed: true, Reason: StoreFailureAllowed}, all[0])
	for _, a := range all {
		if !a.Limit.Shadow && a.Limit.OnStoreFailure == policy.StoreFailureDeny {
			return l.describe(Decision{Reason: StoreFailure}, a)
		}
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
		for _, i := range local {
			if m := l.fallback.take(all[i], w.costOf(i), false, now); !m.room {
				return l.deniedLocally(all[i], m)
			}
		}
	}
	for _, i := range local {
		a, cost := all[i], w.costOf(i)
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
	l.metrics.local.Add(float64(units))
	return d
}

// inLocalPart returns the places of the limits that say on_store_failure: local, without shadow
// limits.
func (w *waiting) inLocalPart() (local []int) {
	for i, a := range w.applied {
		if !a.Limit.Shadow && a.Limit.OnStoreFailure == policy.StoreFailureLocal {
			local = append(local, i)
		}
	}
	return local
}

// deniedLocally returns the denial of a limit whose part has no room.
func (l *Limiter) deniedLocally(a *rules.Applied, m metered) Decision {
	denied := Decision{Reason: StoreFailureLocal, Remaining: m.left, ResetAfter: m.reset,
		RetryAfter: m.reset}
	if m.never {
		denied.RetryAfter = -1
	}
	return l.describe(denied, a)
}
