package fronts

import (
	"context"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/tally"
)

// Views is what a Node knows of itself and of other nodes. The zero value has only started.
type Views struct {
	Others    func(q *quotadv1.ViewRequest) []*quotadv1.View // nil: there are none
	Names     []string
	Units     map[string]admit.LimitUnits
	Hot       []tally.Hot
	Looks     map[policy.BucketID]region.Look
	Listed    []region.Listed
	Questions int // questions to the others
	// Describe is what a server said that describes the node.
	Describe func(context.Context, *quotadv1.ViewRequest) *quotadv1.View
}

// HandleDescribe remembers how a server describes the node.
func (f *Views) HandleDescribe(describe func(context.Context, *quotadv1.ViewRequest) *quotadv1.View) {
	f.Describe = describe
}

// AskViews implements what servers need of a node.
func (f *Views) AskViews(_ context.Context, q *quotadv1.ViewRequest) []*quotadv1.View {
	f.Questions++
	if f.Others == nil {
		return nil
	}
	return f.Others(q)
}

// Expected implements what servers need of a node.
func (f *Views) Expected() []string { return f.Names }

// UnitsByLimit implements what servers need of a node.
func (f *Views) UnitsByLimit() map[string]admit.LimitUnits {
	all := map[string]admit.LimitUnits{}
	for name, u := range f.Units {
		all[name] = u
	}
	return all
}

// Hottest implements what servers need of a node.
func (f *Views) Hottest(most int) ([]tally.Hot, time.Time) {
	return tally.Busiest(f.Hot, most), time.UnixMilli(1_700_000_000_000)
}

// Started implements what servers need of a node.
func (f *Views) Started() time.Time { return time.UnixMilli(1_700_000_000_000) }

// LookAt implements what servers need of a node.
func (f *Views) LookAt(_ context.Context, id policy.BucketID, peek bool) (region.Look, error) {
	l, known := f.Looks[id]
	if !known {
		return l, rules.ErrNoSuchBucket
	}
	if !peek {
		l.Now = admit.Decision{}
	}
	return l, nil
}

// ListBuckets implements what servers need of a node.
func (f *Views) ListBuckets(choose func(policy.BucketRef) bool, most int) (all []region.Listed,
	more bool) {
	for _, l := range f.Listed {
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
func (f *Node) BucketID(limit, domain string, descriptors map[string]string) (policy.BucketID,
	error) {
	d := f.Document()
	for _, l := range d.Compile().Append(nil, domain, descriptors) {
		if l.Name == limit {
			return l.Bucket(descriptors), nil
		}
	}
	return "", rules.ErrNoSuchBucket
}

// LookedAt returns a look at a bucket of limit a.
func LookedAt(d *policy.Document, share, used quantity.Units) region.Look {
	l := region.Look{Epoch: d.Epoch().String()}
	l.Limit = &d.Limits[0]
	l.Terms.Entitlement, l.Terms.Kind = 50, l.Limit.Algorithm
	l.Inspected.Share, l.Inspected.Used, l.Inspected.Free = share, used, share-used
	return l
}

// Overseen returns a node that knows a bucket, and has another node that does described by the server
// that serve makes.
func Overseen(t *testing.T, serve func(*Node)) *Node {
	t.Helper()
	f := &Node{State: region.Status{Region: "us-east", Node: "n1", Epoch: "v3-abc"}}
	d := f.Document()
	id, err := f.BucketID("a", "api", map[string]string{"account": "42"})
	suite.Must(t, err)
	f.Units = map[string]admit.LimitUnits{"a": {Admitted: 7, Denied: 3}, "gone": {Admitted: 1}}
	f.Hot = []tally.Hot{{ID: string(id), Units: tally.Units{Admitted: 7, Denied: 3}}}
	look := LookedAt(d, 50, 20)
	look.LastKnown = true
	look.Last = admit.LastOutcome{At: time.Now().Add(-time.Minute), Admitted: true, Reason: admit.WithinLimit}
	look.Now = admit.Decision{Allowed: true, Reason: admit.WithinLimit, Remaining: 29}
	f.Looks = map[policy.BucketID]region.Look{id: look}
	f.Names = []string{"us-east/n1", "eu-west/n1", "eu-west/n2"}
	other := &Node{State: region.Status{Region: "eu-west", Node: "n1"},
		Views: Views{Hot: f.Hot, Units: f.Units,
			Looks: map[policy.BucketID]region.Look{id: LookedAt(d, 50, 50)}}}
	serve(other)
	f.Others = func(q *quotadv1.ViewRequest) []*quotadv1.View {
		return []*quotadv1.View{other.Describe(t.Context(), q)}
	}
	return f
}
