package admit

import (
	"context"
	"slices"
)

// CheckLists decides a request with lists as its domain says (policy.DomainRules.Descriptors):
// together, with one decision, or each list as a request of its own, with a decision for each. What
// a list replaces does not apply to the others either way. The error is an *invalid.Field, ErrClosed,
// or that of ctx.
func (l *Limiter) CheckLists(ctx context.Context, q Request) ([]Decision, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	r := l.tenure.Rules()
	if rule, _ := r.Domain(q.Domain); len(q.Lists) == 1 || !rule.Apart() {
		d, err := l.Check(ctx, q)
		return []Decision{d}, err
	}
	if r.Replaces {
		q.replaced = l.prepare(q, true, nil).lists.replaced
	}
	all := make([]Request, len(q.Lists))
	for i := range q.Lists {
		all[i] = q
		all[i].Lists = slices.Clone(q.Lists[i : i+1])
	}
	decided, err := l.CheckBatch(ctx, all)
	for _, d := range decided {
		if d.Problem != nil {
			return nil, d.Problem
		}
	}
	return decided, err
}
