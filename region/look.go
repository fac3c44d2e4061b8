package region

import (
	"context"
	"slices"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/assign"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/tally"
)

// Look is what a node knows of a bucket.
type Look struct {
	Bucket
	Epoch string         // of the limits document in force
	Now   admit.Decision // on a request of one unit; zero unless it was asked for
	// Last is what became of the last request at this node, with times of the node's clock as far
	// as that of the store is known. It is valid if LastKnown is true.
	Last       admit.LastOutcome
	LastKnown  bool
	Prefetched quantity.Units // that the node holds to admit from without its store
	Denies     bool           // the node remembers a denial
	Degraded   []Towards
	// Envoys is what this node told Envoys, at most MaxEnvoys of them.
	Envoys []assign.Holding
}

// MaxEnvoys bounds the Envoys that a Look names.
const MaxEnvoys = 100

// Towards is a region that does not answer.
type Towards struct {
	Region string
	Since  time.Time // zero: it never answered
}

// BucketID returns the id of the bucket of a limit and descriptors, or rules.ErrNoSuchBucket.
func (n *Node) BucketID(limit, domain string, descriptors map[string]string) (policy.BucketID, error) {
	if err := (admit.Request{Domain: domain, Descriptors: descriptors,
		Cost: 1}).Validate(); err != nil {
		return "", err
	}
	_, b, err := n.tenure.Rules().Locate(limit, domain, descriptors)
	if err != nil {
		return "", err
	}
	return policy.BucketID(b.ID), nil
}

// LookAt returns what this node knows of a bucket. With peek it also finds out what a request of
// one unit would be told. The error is rules.ErrNoSuchBucket if the documents in force have no such
// bucket.
func (n *Node) LookAt(ctx context.Context, id policy.BucketID, peek bool) (Look, error) {
	r := n.tenure.Rules()
	a := r.Lookup(string(id))
	if a == nil {
		return Look{}, rules.ErrNoSuchBucket
	}
	found, err := n.config.Store.Inspect(ctx, algorithms.Inspect{
		Fence: algorithms.Fence{Epoch: r.Epoch}, Target: r.Target(a.Bucket, 0)})
	if err != nil {
		return Look{}, err
	}
	l := Look{Bucket: Bucket{Limit: a.Limit, Terms: a.Bucket.Terms(r.Region), Inspected: found,
		ClosedUntil: n.closedUntil(found)},
		Epoch: r.Newest, Degraded: n.degradedTowards(a.Bucket)}
	l.Prefetched, l.Denies = n.limiter.Remembers(a)
	if l.Last, l.LastKnown = admit.Last(a); l.LastKnown {
		l.Last.At = n.byOwnClock(l.Last.At)
	}
	told, _ := n.envoys.View(string(id), MaxEnvoys)
	l.Envoys = told.Holdings
	if peek {
		l.Now, err = n.limiter.PeekBucket(ctx, a)
	}
	return l, err
}

// byOwnClock returns what this node's clock shows at a time of its store, as far as that is known.
func (n *Node) byOwnClock(at time.Time) time.Time {
	if ahead, known := n.rights.StoreClock(n.config.Now()); known {
		return at.Add(-ahead)
	}
	return at
}

// degradedTowards returns the regions with a part of a bucket that do not answer this node.
func (n *Node) degradedTowards(b *exchange.Bucket) (all []Towards) {
	ages, _, _ := n.rights.Snapshot()
	for _, a := range ages {
		if !a.Degraded || b.Entitlements[a.Peer] == 0 {
			continue
		}
		t := Towards{Region: a.Peer}
		if a.Heard {
			t.Since = n.config.Now().Add(-quantity.Duration(a.Age))
		}
		all = append(all, t)
	}
	return all
}

// Hottest returns the buckets with the most units at this node, and since when they were counted.
// See [rules.Rules.Hottest].
func (n *Node) Hottest(most int) ([]tally.Hot, time.Time) {
	return n.tenure.Rules().Hottest(n.config.Now(), most)
}

// Started returns when the node was made.
func (n *Node) Started() time.Time { return n.started }

// Listed is a bucket that a node has in memory.
type Listed struct {
	Ref       policy.BucketRef
	Last      admit.LastOutcome // valid if LastKnown
	LastKnown bool
}

// ListBuckets returns buckets that this node was asked about lately (at most rules.MaxFound are in
// its memory), of those that choose lets pass, and whether there are more than most. They come in
// no order.
func (n *Node) ListBuckets(choose func(policy.BucketRef) bool, most int) (all []Listed, more bool) {
	n.tenure.Rules().Each(func(a *rules.Applied) bool {
		ref, err := policy.ParseBucketID(policy.BucketID(a.Bucket.ID))
		if err != nil || !choose(ref) {
			return true
		}
		if len(all) == most {
			more = true
			return false
		}
		l := Listed{Ref: ref}
		if l.Last, l.LastKnown = admit.Last(a); l.LastKnown {
			l.Last.At = n.byOwnClock(l.Last.At)
		}
		all = append(all, l)
		return true
	})
	return slices.Clip(all), more
}
