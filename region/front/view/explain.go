package view

import (
	"slices"
	"time"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
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
	e := &quotadv1.ExplainResponse{Regions: regions}
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
			e.LimitUnits, e.Algorithm = l.GetLimitUnits(), l.GetAlgorithm()
		}
	}
	e.Sentence = sentence(e, now)
	return e
}

// lastOf returns the region in which the last request on a bucket was decided; nil: none that a
// node remembers.
func lastOf(regions []*quotadv1.BucketView) (last *quotadv1.BucketView) {
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
