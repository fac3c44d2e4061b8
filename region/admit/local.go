package admit

import (
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/rules"
)

// withoutStore decides a request by the on_store_failure of its limits. If one limit says deny, the
// request is denied. Otherwise every limit that says local must have room in this node's part.
func (l *Limiter) withoutStore(q Request, all []*rules.Applied, commit bool) Decision {
	d := l.describe(Decision{Allowed: true, Reason: StoreFailureAllowed}, all[0])
	for _, a := range all {
		if !a.Limit.Shadow && a.Limit.OnStoreFailure == policy.StoreFailureDeny {
			return l.describe(Decision{Reason: StoreFailure}, a)
		}
	}
	type charge struct {
		*rules.Applied
		window quantity.Cell
	}
	var charged []charge
	now, local := l.config.Now(), inLocalPart(all)
	// All limits are checked before any is charged, so that a denial leaves no record and no claim
	// of the limits that had room.
	if commit && len(local) > 1 {
		for _, a := range local {
			if m := l.fallback.take(a, q.Cost, false, now); !m.room {
				return l.deniedLocally(a, m)
			}
		}
	}
	for _, a := range local {
		m := l.fallback.take(a, q.Cost, commit, now)
		if !m.room {
			for _, c := range charged {
				l.fallback.giveBack(c.Applied, q.Cost, c.window)
			}
			return l.deniedLocally(a, m)
		}
		if commit {
			charged = append(charged, charge{a, m.window})
		}
		if d.Reason != StoreFailureLocal || m.left < d.Remaining {
			d = l.describe(Decision{Allowed: true, Reason: StoreFailureLocal, Remaining: m.left,
				ResetAfter: m.reset}, a)
		}
	}
	l.metrics.local.Add(float64(q.Cost) * float64(len(charged)))
	return d
}

// inLocalPart returns the limits of a request that say on_store_failure: local, without shadow
// limits.
func inLocalPart(all []*rules.Applied) (local []*rules.Applied) {
	for _, a := range all {
		if !a.Limit.Shadow && a.Limit.OnStoreFailure == policy.StoreFailureLocal {
			local = append(local, a)
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
