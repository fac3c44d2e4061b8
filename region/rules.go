package region

import (
	"errors"
	"fmt"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/store"
)

// rules is one policy document made ready for one region. It never changes.
type rules struct {
	document *policy.Document
	epoch    string
	matcher  *policy.Matcher
	region   string
	peers    []string                  // the other regions
	splits   map[*policy.Limit][]split // for each rotation of remainders and homes
	shards   store.Shards              // of the region's store
}

// split is what the store of each region holds of a limit, by region: what the region is entitled to, less its reserve.
type split struct {
	units, burst map[string]int64
	reserve      *reserve // of this region; nil: the limit keeps none
}

// reserve is what a region keeps of a limit out of its store (local_reserve), for nodes that cannot use it. Every region
// knows it of every other, and so what that one may lend.
type reserve struct {
	units, burst int64 // 0 where the entitlement is too small for it
	stored       int64 // the units, or burst of a bucket, that the stores of all regions hold
}

func newRules(d *policy.Document, region string) (*rules, error) {
	r := &rules{document: d, epoch: d.Epoch().String(), matcher: d.Compile(), region: region,
		splits: make(map[*policy.Limit][]split, len(d.Limits))}
	for _, known := range d.Regions {
		if known.Name != region {
			r.peers = append(r.peers, known.Name)
		}
	}
	if len(r.peers) == len(d.Regions) {
		return nil, fmt.Errorf("policy %s has no region %q: add it to the document's regions, or correct this node's region", r.epoch, region)
	}
	for i := range d.Limits {
		l := &d.Limits[i]
		for rotation := range d.Regions {
			r.splits[l] = append(r.splits[l], r.splitOf(l, uint64(rotation)))
		}
	}
	return r, nil
}

// splitOf splits a limit for keys of one rotation.
func (r *rules) splitOf(l *policy.Limit, rotation uint64) split {
	regions := r.document.Regions
	whole := allocator.SplitOf(l.Limit, l.Burst, l.Weights, rotation, l.Home())
	stored := whole.Stored(int64(l.Reserve()))
	parts := split{units: make(map[string]int64, len(regions)), burst: make(map[string]int64, len(regions))}
	if l.Reserve() > 0 {
		parts.reserve = &reserve{}
	}
	for i, known := range regions {
		parts.units[known.Name], parts.burst[known.Name] = stored.Units[i], stored.Burst[i]
		if parts.reserve == nil {
			continue
		}
		if known.Name == r.region {
			parts.reserve.units, parts.reserve.burst = whole.Units[i]-stored.Units[i], whole.Burst[i]-stored.Burst[i]
		}
		if l.Algorithm.Bucket() {
			parts.reserve.stored += stored.Burst[i]
		} else {
			parts.reserve.stored += stored.Units[i]
		}
	}
	return parts
}

// split returns the split of a limit for a key.
func (r *rules) split(l *policy.Limit, id policy.BucketID) *split {
	return &r.splits[l][id.Hash()%uint64(len(r.splits[l]))]
}

// bucket returns what the exchange must know of a limit applied to a key. In home mode the home region lends all that it
// has, and there is nothing that a borrowing limit could be a part of.
func (r *rules) bucket(l *policy.Limit, id policy.BucketID) *exchange.Bucket {
	return r.bucketOf(l, id, r.split(l, id))
}

func (r *rules) bucketOf(l *policy.Limit, id policy.BucketID, parts *split) *exchange.Bucket {
	b := &exchange.Bucket{
		ID:           string(id),
		Epoch:        r.epoch,
		Kind:         l.Algorithm,
		Limit:        l.Limit,
		Window:       l.Window.Microseconds(),
		Cell:         l.Cell().Microseconds(),
		Tick:         algorithms.Tick(l.Algorithm, max(l.Limit, l.Burst), l.Window.Microseconds()),
		Entitlements: parts.units,
		Bursts:       parts.burst,
		Lending:      int64(l.LendingLimit),
		Borrowing:    int64(l.BorrowingLimit),
		Recovered:    algorithms.Recovers(l.Algorithm, l.Window.Microseconds()),
	}
	if l.Algorithm.Sliding() {
		b.ClockMargin = algorithms.ClockMargin
	}
	if l.Home() {
		b.Home, b.Lending, b.Borrowing = true, allocator.PPM, int64(policy.Unlimited)
	}
	return b
}

// key returns the key of a bucket in the region's store.
func (r *rules) key(id string) string {
	return store.BucketKey(r.shards.Of(policy.BucketID(id).Entity()), id)
}

// find returns the bucket that a peer means, or nil if this document has none like it.
func (r *rules) find(id string) *exchange.Bucket {
	ref, err := policy.ParseBucketID(policy.BucketID(id))
	if err != nil {
		return nil
	}
	l, ok := r.matcher.Entry(ref)
	if !ok {
		return nil
	}
	return r.bucket(l, policy.BucketID(id))
}

// locate returns the limit of a name that applies to the descriptors, and its bucket.
func (r *rules) locate(name, domain string, descriptors map[string]string) (*policy.Limit, *exchange.Bucket, error) {
	for _, l := range r.matcher.Append(nil, domain, descriptors) {
		if l.Name == name {
			return l, r.bucket(l, l.Bucket(descriptors)), nil
		}
	}
	return nil, nil, ErrNoSuchBucket
}

// ErrNoSuchBucket says that no limit of the name applies to the descriptors.
var ErrNoSuchBucket = errors.New("no limit of this name and domain applies to these descriptors")

// applied is one limit as it applies to one request.
type applied struct {
	limit   *policy.Limit
	bucket  *exchange.Bucket
	target  algorithms.LimitTarget
	reserve *reserve // nil: the limit keeps none
}

// entitlement returns F of this region, of which its store holds all but the reserve.
func (a applied) entitlement() int64 {
	f := a.target.Terms.Entitlement
	if a.reserve != nil {
		f += a.reserve.units
	}
	return f
}

// most returns the largest cost that the limit can ever admit, with the rights of all regions in one store.
func (a applied) most() int64 {
	switch {
	case a.reserve != nil:
		return a.reserve.stored
	case a.limit.Algorithm.Bucket():
		return a.limit.Burst
	}
	return a.limit.Limit
}

// target returns what a script call must know of a bucket that is known to be in the store until a time.
func (r *rules) target(b *exchange.Bucket, existsUntil int64) algorithms.Target {
	return algorithms.Target{Key: r.key(b.ID), Terms: b.Terms(r.region), ExistsUntil: existsUntil}
}

// match returns the limits that apply to a request.
func (r *rules) match(q Request) []applied {
	var found [8]*policy.Limit
	limits := r.matcher.Append(found[:0], q.Domain, q.Descriptors)
	all := make([]applied, len(limits))
	for i, l := range limits {
		id := l.Bucket(q.Descriptors)
		parts := r.split(l, id)
		b := r.bucketOf(l, id, parts)
		all[i] = applied{limit: l, bucket: b, reserve: parts.reserve,
			target: algorithms.LimitTarget{Target: r.target(b, 0), Shadow: l.Shadow}}
	}
	return all
}
