package view

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/front/asjson"
)

// Explain says how a bucket stands. views is what the nodes of all regions told of it, order the
// regions of the limits document, and now the time by the clock of the node that was asked.
func Explain(views []*quotadv1.BucketView, order []string, now time.Time) *quotadv1.ExplainResponse {
	regions := ByRegion(views)
	place := func(region string) int {
		if i := slices.Index(order, region); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(regions, func(a, b *quotadv1.BucketView) int {
		return place(a.GetRegion()) - place(b.GetRegion())
	})
	e := &quotadv1.ExplainResponse{}
	for _, name := range order {
		if !slices.ContainsFunc(regions, func(r *quotadv1.BucketView) bool {
			return r.GetRegion() == name
		}) {
			e.Silent = append(e.Silent, name)
		}
	}
	for _, r := range regions {
		if l := r.GetLedger(); l != nil {
			e.Used += l.GetUsed()
			e.LimitUnits, e.Algorithm = l.GetLimitUnits(), asjson.Some(l.GetAlgorithm())
			if l.Owed != nil {
				e.Owed = new(e.GetOwed() + l.GetOwed())
			}
		}
		e.Regions = append(e.Regions, inRegion(r))
	}
	e.Sentence = sentence(e, now)
	return e
}

// inRegion returns what operators read of a region's view of a bucket.
func inRegion(v *quotadv1.BucketView) *quotadv1.BucketInRegion {
	l := v.GetLedger()
	in := &quotadv1.BucketInRegion{Region: v.GetRegion(), Node: v.GetNode(), Epoch: v.GetEpoch(),
		Entitlement: l.GetEntitlement(), Share: l.GetShare(), Used: l.GetUsed(), Free: l.GetFree(),
		Cell: l.GetCell(), Now: told(v.GetNow()), Last: v.GetLast(), Degraded: v.GetDegraded(),
		ClosedUntil: v.GetClosedUntil(), PrefetchedUnits: v.GetPrefetchedUnits(),
		RememberDenial: v.GetRememberDenial(), Envoys: v.GetEnvoys(),
		Problem: asjson.Some(v.GetProblem()), Assigned: asjson.Some(l.GetAssigned())}
	if l != nil {
		in.Owed, in.Classes = l.Owed, l.Classes
	}
	for _, r := range l.GetRights() {
		in.Rights = append(in.Rights, &quotadv1.Rights{Cell: r.GetCell(), Region: r.GetRegion(),
			Lent: r.GetLent(), Returned: r.GetReturned(), Borrowed: r.GetBorrowed(),
			Regained: r.GetRegained()})
	}
	return in
}

// told returns what operators read of what a request would be told, nil for nil.
func told(d *quotadv1.Decision) *quotadv1.BucketNow {
	if d == nil {
		return nil
	}
	return &quotadv1.BucketNow{Allowed: d.GetAllowed(), Reason: d.GetReason(),
		Remaining: d.GetRemaining(), ResetAfter: toMilliseconds(d.GetResetAfter()),
		RetryAfter: toMilliseconds(d.GetRetryAfter())}
}

// toMilliseconds returns a time in whole milliseconds, nil for nil.
func toMilliseconds(d *durationpb.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(d.AsDuration().Round(time.Millisecond))
}

// lastOf returns the region in which the last request on a bucket was decided; nil: none that a
// node remembers.
func lastOf(regions []*quotadv1.BucketInRegion) (last *quotadv1.BucketInRegion) {
	for _, r := range regions {
		if r.GetLast() == nil {
			continue
		}
		if last == nil || r.GetLast().GetAt().AsTime().After(last.GetLast().GetAt().AsTime()) {
			last = r
		}
	}
	return last
}
