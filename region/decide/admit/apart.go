package admit

import (
	"cmp"
	"context"
	"slices"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/memory/rules"
)

// ListsDecision is what became of a request with lists.
type ListsDecision struct {
	Allowed   bool
	Decisions []Decision
	// Of holds, for each of Decisions, the places of the lists that it is about. Lists that give back
	// are in none.
	Of [][]int
	// Spared holds, for each of Decisions, whether it is a denial that denies nothing: that of an
	// alternative limit, beside another one with room.
	Spared []bool
	// Replaced holds the aliases of limits that do not apply, because of what other lists met.
	Replaced []string
	// Tells is the limits document that decided, if its limits or exemptions of this domain have
	// metadata for Envoy; else nil.
	Tells *policy.Document
}

// CheckLists decides a request with lists as its domain says (policy.DomainRules.Descriptors):
// together, with one decision, or each list as a request of its own, with a decision for each. It is
// the only way for such a request, whatever its lists cost: one that costs nothing is asked about,
// limits that say charge: always are charged as Report does. What a list replaces does not apply to the
// others. Alternative limits deny if all of the request do. The error is an *invalid.Field, ErrClosed,
// or that of ctx.
func (l *Limiter) CheckLists(ctx context.Context, q Request) (ListsDecision, error) {
	if err := q.Validate(); err != nil {
		return ListsDecision{}, err
	}
	var all ListsDecision
	r := l.tenure.Rules()
	if r.Tells[q.Domain] {
		all.Tells = r.Document
	}
	if r.Replaces {
		all.Replaced = l.prepare(q, true, nil).lists.replaced
		q.replaced = all.Replaced
	}
	rule, _ := r.Domain(q.Domain)
	all.Of = parted(q.Lists, rule.Apart())
	requests := make([]Request, len(all.Of))
	for n, places := range all.Of {
		requests[n] = q
		requests[n].Lists = make([]List, len(places))
		for i, place := range places {
			requests[n].Lists[i] = q.Lists[place]
		}
	}
	var err error
	all.Decisions, err = l.checkEach(ctx, r, requests)
	all.join()
	return all, err
}

// parted returns the places of the lists of a request that are decided, each by itself or together.
// Those that ask come before those that are charged, which may be charged of the same bucket.
func parted(lists []List, apart bool) (parts [][]int) {
	for i, list := range lists {
		switch {
		case list.Back:
		case apart || len(parts) == 0:
			parts = append(parts, []int{i})
		default:
			parts[0] = append(parts[0], i)
		}
	}
	slices.SortStableFunc(parts, func(a, b []int) int {
		return cmp.Compare(min(lists[a[0]].Cost, 1), min(lists[b[0]].Cost, 1))
	})
	return parts
}

// checkEach decides requests, each as Check does, or after those as Report does. The error is that of
// the first that has one.
func (l *Limiter) checkEach(ctx context.Context, r *rules.Rules, requests []Request) ([]Decision, error) {
	decisions := make([]Decision, len(requests))
	var plain, charged []int
	for n, q := range requests {
		if r.Charges && l.reports(q) {
			charged = append(charged, n)
		} else {
			plain = append(plain, n)
		}
	}
	if err := l.checkPlain(ctx, requests, plain, decisions); err != nil {
		return nil, err
	}
	for _, n := range charged {
		var err error
		if decisions[n], err = l.Report(ctx, requests[n]); err != nil {
			return nil, err
		}
	}
	return decisions, nil
}

// checkPlain decides those of requests that charge no limit always.
func (l *Limiter) checkPlain(ctx context.Context, requests []Request, of []int, decisions []Decision) (err error) {
	switch len(of) {
	case 0:
		return nil
	case 1:
		decisions[of[0]], err = l.Check(ctx, requests[of[0]])
		return err
	}
	all := make([]Request, len(of))
	for i, n := range of {
		all[i] = requests[n]
	}
	decided, err := l.CheckBatch(ctx, all)
	if err != nil {
		return err
	}
	for i, d := range decided {
		if d.Problem != nil {
			return d.Problem
		}
		decisions[of[i]] = d
	}
	return nil
}

// join finds out whether the request is admitted: no part denies it, and of those with alternative
// limits alone not all do.
func (all *ListsDecision) join() {
	all.Allowed, all.Spared = true, make([]bool, len(all.Decisions))
	alternatives, full := 0, 0
	for n, d := range all.Decisions {
		switch {
		case !d.alternative():
			all.Allowed = all.Allowed && d.Allowed
			continue
		case !d.Allowed:
			all.Spared[n] = true
			full++
		}
		alternatives++
	}
	if alternatives > 0 && full == alternatives {
		all.Allowed = false
		clear(all.Spared)
	}
}

// alternative reports whether alternative limits alone decided.
func (d Decision) alternative() bool {
	barred := slices.ContainsFunc(d.Met, func(m Met) bool { return m.Exempt != nil && m.Exempt.Alternative })
	return (len(d.Limits) > 0 || barred) &&
		!slices.ContainsFunc(d.Limits, func(s LimitState) bool { return !s.Alternative })
}
