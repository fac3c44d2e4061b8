package admit

import (
	"context"
	"slices"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/memory/rules"
)

// MaxLists bounds the lists of descriptors of one request. Each list has at most MaxDescriptors.
const MaxLists = 16

// List is a list of descriptors in order, as requests of Envoy have them. A request may have
// several. Each meets limits of its own, and all of these are charged, or none. A bucket that
// several lists meet is charged once, the most that any of them costs.
type List struct {
	Entries []policy.KeyValue
	// Cost is 0 to 2^51 units. A list of which it is 0 asks whether a unit is left, and is charged
	// nothing: the charge follows, since what it costs is known only afterwards.
	Cost quantity.Units
	// Back says that what was charged last is to be given back (RefundLast). CheckLists neither charges
	// such a list nor asks about it: it only leaves out the limits that it replaces.
	Back bool
}

// Met is what one list of a request met.
type Met struct {
	Limits []int // places in Decision.Limits
	// Exempt is the exemption of the document that the list meets; nil: none, or it is replaced.
	Exempt *policy.Exemption
	// Replaced says that something of what it meets does not apply, since others replace it.
	Replaced bool
}

// listed is what a waiting request with lists has beyond others.
type listed struct {
	met      []Met
	replaced []string // aliases of limits that its limits and exemptions replace
	denied   bool     // by an exemption
	lessened bool     // limits or denials were left out that others replace
	room     listRoom
}

// listRoom is room for most requests with lists, made with the rest of them at once.
type listRoom struct {
	met    [2]Met
	costs  [4]quantity.Units
	places [4]int // of limits
}

// matchLists finds the limits that apply to the lists of a request, and what it costs of each.
func (w *way) matchLists(q Request, room []*rules.Applied) {
	w.lists, w.Applied = &listed{replaced: q.replaced}, room
	own := &w.lists.room
	if w.lists.met = own.met[:]; len(q.Lists) > len(own.met) {
		w.lists.met = make([]Met, len(q.Lists))
	}
	w.lists.met = w.lists.met[:len(q.Lists)]
	costs, places := own.costs[:0], own.places[:0]
	for n, list := range q.Lists {
		var some [4]*rules.Applied
		met, exempt := w.Rules.AppendList(some[:0], q.Domain, list.Entries)
		its, first := &w.lists.met[n], len(places)
		if exempt == nil && w.stray == "" {
			w.stray = w.Rules.Stray(q.Domain, nil, list.Entries)
		}
		if exempt != nil {
			its.Exempt = exempt
			w.lists.replaced = append(w.lists.replaced, exempt.Replaces...)
		}
		for _, a := range met {
			w.lists.replaced = append(w.lists.replaced, a.Limit.Replaces...)
			place := slices.IndexFunc(w.Applied,
				func(b *rules.Applied) bool { return b.Bucket.ID == a.Bucket.ID })
			if place < 0 {
				place = len(w.Applied)
				w.Applied, costs = append(w.Applied, a), append(costs, 0)
			}
			costs[place] = max(costs[place], list.Cost)
			places = append(places, place)
		}
		its.Limits = places[first:len(places):len(places)]
	}
	if len(w.lists.replaced) > 0 {
		costs = w.leaveReplaced(costs)
	}
	w.costing(costs)
	w.lists.denied = w.barred()
}

// leaveReplaced leaves out the limits and exemptions that others of the request replace.
func (w *way) leaveReplaced(costs []quantity.Units) []quantity.Units {
	replaced := func(alias string) bool { return alias != "" && slices.Contains(w.lists.replaced, alias) }
	for n := range w.lists.met {
		its := &w.lists.met[n]
		if its.Exempt != nil && replaced(its.Exempt.Alias) {
			its.Exempt, its.Replaced, w.lists.lessened = nil, true, true
		}
	}
	before := len(w.Applied)
	costs = w.leave(costs, func(i int) bool { return replaced(w.Applied[i].Limit.Alias) })
	w.lists.lessened = w.lists.lessened || len(w.Applied) < before
	return costs
}

// barred reports whether an exemption that one of the lists meets denies the request.
func (w *way) barred() bool {
	return slices.ContainsFunc(w.lists.met, func(its Met) bool { return w.bars(its.Exempt) })
}

// bars reports whether an exemption denies the request. An alternative one does only if no alternative
// limit applies, which decides then: the exemption never has room.
func (w *way) bars(e *policy.Exemption) bool {
	return e != nil && e.Deny && !(e.Alternative &&
		slices.ContainsFunc(w.Applied, func(a *rules.Applied) bool { return a.Limit.Alternative }))
}

// costing sets what the request costs of each limit.
func (w *way) costing(costs []quantity.Units) {
	w.Cost, w.Costs = 1, nil
	for _, cost := range costs {
		w.Cost = max(w.Cost, cost)
	}
	if slices.ContainsFunc(costs, func(cost quantity.Units) bool { return cost != w.Cost }) {
		w.Costs = costs
	}
}

// withoutReplaced leaves out the limits and the exemption of a request without lists that others of
// them replace.
func (w *way) withoutReplaced() {
	var all []string
	if w.exempts != nil {
		all = append(all, w.exempts.Replaces...)
	}
	for _, a := range w.Applied {
		all = append(all, a.Limit.Replaces...)
	}
	replaced := func(alias string) bool { return alias != "" && slices.Contains(all, alias) }
	if w.exempts != nil && replaced(w.exempts.Alias) {
		w.exempts = nil
	}
	w.Applied = slices.DeleteFunc(w.Applied, func(a *rules.Applied) bool { return replaced(a.Limit.Alias) })
}

// leave leaves out some of the limits that the lists meet, with their costs.
// out says of a place in w.Applied whether its limit is left out.
func (w *way) leave(costs []quantity.Units, out func(place int) bool) []quantity.Units {
	places, kept := make([]int, len(w.Applied)), 0
	for i := range w.Applied {
		places[i] = -1
		if !out(i) {
			w.Applied[kept], costs[kept], places[i] = w.Applied[i], costs[i], kept
			kept++
		}
	}
	w.Applied = w.Applied[:kept]

	for n := range w.lists.met {
		met := &w.lists.met[n]
		left := met.Limits[:0]
		for _, place := range met.Limits {
			if places[place] >= 0 {
				left = append(left, places[place])
			}
		}
		met.Limits = left
	}
	return costs[:kept]
}

// denied reports whether an exemption denies the request.
func (w *way) denied() bool {
	return w.lists != nil && w.lists.denied || w.bars(w.exempts)
}

// needsNoStore reports whether the request is decided by the document alone.
func (w *way) needsNoStore(domain string) bool {
	if len(w.Applied) == 0 || w.denied() || w.Rules.Serves() != nil {
		return true
	}
	if w.stray == "" {
		return false
	}
	rule, _ := w.Rules.Domain(domain)
	return rule.OnNoLimit == policy.NoLimitDeny
}

// RefundLast gives back up to the cost of a list, of what was charged last of the buckets that it
// meets, as [receipts.Receipts.Uncharge] does, but for limits with an alias that is replaced. The error
// is an *invalid.Field or that of the store.
func (l *Limiter) RefundLast(ctx context.Context, domain string, list List, replaced []string) (receipts.Settled, error) {
	q := Request{Domain: domain, Lists: []List{list}, replaced: replaced}
	if err := q.Validate(); err != nil {
		return receipts.Settled{}, err
	}
	w := l.prepare(q, true, nil)
	if err := bounded(w.Applied); err != nil {
		return receipts.Settled{}, err
	}
	return l.receipts.Uncharge(ctx, w.Ask)
}

// Buckets returns the buckets that a list meets, for the audit log.
func (l *Limiter) Buckets(domain string, list List) (all []policy.BucketRef) {
	met, _ := l.tenure.Rules().AppendList(nil, domain, list.Entries)
	for _, a := range met {
		if ref, err := policy.ParseBucketID(policy.BucketID(a.Bucket.ID)); err == nil {
			all = append(all, ref)
		}
	}
	return slices.Clip(all)
}
