package api

import (
	"context"
	"time"

	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/tally"
)

// fakeViews is what a fakeNode knows of itself and of other nodes. The zero value has only started.
type fakeViews struct {
	others    func(q *quotadv1.ViewRequest) []*quotadv1.View // nil: there are none
	expected  []string
	units     map[string]admit.LimitUnits
	hot       []tally.Hot
	looks     map[policy.BucketID]region.Look
	listed    []region.Listed
	questions int // questions to the others
}

func (f *fakeViews) HandleDescribe(func(context.Context, *quotadv1.ViewRequest) *quotadv1.View) {
}

func (f *fakeViews) AskViews(_ context.Context, q *quotadv1.ViewRequest) []*quotadv1.View {
	f.questions++
	if f.others == nil {
		return nil
	}
	return f.others(q)
}

func (f *fakeViews) Expected() []string { return f.expected }

func (f *fakeViews) UnitsByLimit() map[string]admit.LimitUnits {
	all := map[string]admit.LimitUnits{}
	for name, u := range f.units {
		all[name] = u
	}
	return all
}

func (f *fakeViews) Hottest(most int) ([]tally.Hot, time.Time) {
	return tally.Busiest(f.hot, most), time.UnixMilli(1_700_000_000_000)
}

func (f *fakeViews) Started() time.Time { return time.UnixMilli(1_700_000_000_000) }

func (f *fakeViews) LookAt(_ context.Context, id policy.BucketID, peek bool) (region.Look, error) {
	l, known := f.looks[id]
	if !known {
		return l, rules.ErrNoSuchBucket
	}
	if !peek {
		l.Now = admit.Decision{}
	}
	return l, nil
}

func (f *fakeViews) ListBuckets(choose func(policy.BucketRef) bool, most int) (all []region.Listed,
	more bool) {
	for _, l := range f.listed {
		switch {
		case !choose(l.Ref):
		case len(all) == most:
			return all, true
		default:
			all = append(all, l)
		}
	}
	return all, false
}

// BucketID finds the buckets of the document that is open.
func (f *fakeNode) BucketID(limit, domain string, descriptors map[string]string) (policy.BucketID,
	error) {
	d := f.Document()
	for _, l := range d.Compile().Append(nil, domain, descriptors) {
		if l.Name == limit {
			return l.Bucket(descriptors), nil
		}
	}
	return "", rules.ErrNoSuchBucket
}

// lookedAt returns a look at a bucket of limit a.
func lookedAt(d *policy.Document, share, used quantity.Units) region.Look {
	l := region.Look{Epoch: d.Epoch().String()}
	l.Limit = &d.Limits[0]
	l.Terms.Entitlement, l.Terms.Kind = 50, l.Limit.Algorithm
	l.Inspected.Share, l.Inspected.Used, l.Inspected.Free = share, used, share-used
	return l
}
