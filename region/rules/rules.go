// Package rules makes one limits document ready for one region. It decides which limits apply to a
// request, what the region's store holds of each limit (the region's entitlement, less its
// reserve), and what the exchange and the scripts must know of a bucket. Rules do not change once
// made, and are safe for concurrent use.
package rules

import (
	"errors"
	"fmt"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/store"
)

// Rules is one limits document as one region applies it.
type Rules struct {
	Document *policy.Document
	Epoch    string // version and digest of the document
	Region   string
	Peers    []string     // the other regions of the document
	Shards   store.Shards // of the region's store
	// Prefetches says that some limit says consistency: prefetch.
	Prefetches bool

	matcher *policy.Matcher
	splits  [][]split // by index of the limit, and by rotation
	found   found
}

// split is what each region's store holds of a limit: what the region is entitled to, less its
// reserve. A rotation decides who gets remainders and homes.
type split struct {
	bucket  exchange.Bucket  // without an ID
	terms   algorithms.Terms // of this region's store
	reserve *Reserve         // of this region; nil: the limit keeps none
}

// Reserve is what a region keeps of a limit out of its store (local_reserve), for nodes that cannot
// reach the store. Every region can compute every other region's reserve, and so knows what that
// region may lend.
type Reserve struct {
	Units, Burst quantity.Units // 0 if the entitlement is too small
	// units, or burst of a bucket, that the stores of all regions hold together
	stored quantity.Units
}

// ErrNoRegion says that a document does not have the region in which it is to be applied.
var ErrNoRegion = errors.New("has no region")

// New returns the rules of a document for a region whose store has these shards. It fails with
// ErrNoRegion if the document does not have the region.
func New(d *policy.Document, region string, shards store.Shards) (*Rules, error) {
	r := &Rules{Document: d, Epoch: d.Epoch().String(), Region: region, Shards: shards,
		matcher: d.Compile(), splits: make([][]split, len(d.Limits))}
	for _, known := range d.Regions {
		if known.Name != region {
			r.Peers = append(r.Peers, known.Name)
		}
	}
	if len(r.Peers) == len(d.Regions) {
		return nil, fmt.Errorf(
			"policy %s %w %q: add it to the document's regions, or correct this node's region",
			r.Epoch, ErrNoRegion, region)
	}
	for i := range d.Limits {
		l := &d.Limits[i]
		r.Prefetches = r.Prefetches || l.Consistency == policy.Prefetch
		for rotation := range d.Regions {
			r.splits[i] = append(r.splits[i], r.splitOf(l, uint64(rotation)))
		}
	}
	return r, nil
}

// splitOf returns the split of a limit for keys of one rotation.
func (r *Rules) splitOf(l *policy.Limit, rotation uint64) (parts split) {
	regions := r.Document.Regions
	whole := allocator.SplitOf(l.Limit, l.Burst, l.Weights, rotation, l.Home())
	stored := whole.Stored(quantity.PPM(l.Reserve()))
	units, burst := make(map[string]quantity.Units, len(regions)),
		make(map[string]quantity.Units, len(regions))
	if l.Reserve() > 0 {
		parts.reserve = &Reserve{}
	}
	for i, known := range regions {
		units[known.Name], burst[known.Name] = stored.Units[i], stored.Burst[i]
		if parts.reserve == nil {
			continue
		}
		if known.Name == r.Region {
			parts.reserve.Units, parts.reserve.Burst = whole.Units[i]-stored.Units[i],
				whole.Burst[i]-stored.Burst[i]
		}
		if l.Algorithm.Bucket() {
			parts.reserve.stored += stored.Burst[i]
		} else {
			parts.reserve.stored += stored.Units[i]
		}
	}
	parts.bucket = r.bucketOf(l, units, burst)
	parts.terms = parts.bucket.Terms(r.Region)
	return parts
}

// split returns the split of a limit for a key.
func (r *Rules) split(l *policy.Limit, id policy.BucketID) *split {
	all := r.splits[l.Index]
	return &all[id.Hash()%uint64(len(all))]
}

// bucket returns what the exchange must know of a limit applied to a key.
func (r *Rules) bucket(l *policy.Limit, id policy.BucketID) *exchange.Bucket {
	b := r.split(l, id).bucket
	b.ID = string(id)
	return &b
}

// bucketOf returns what the buckets of a limit and rotation have in common. In home mode the home
// region may lend all it has. The other regions' entitlements are 0, so no borrowing limit applies:
// it would be a part of nothing.
func (r *Rules) bucketOf(l *policy.Limit, units, burst map[string]quantity.Units) exchange.Bucket {
	b := exchange.Bucket{
		Epoch:        r.Epoch,
		Kind:         l.Algorithm,
		Limit:        l.Limit,
		Window:       l.Window.Microseconds(),
		Cell:         l.Cell().Microseconds(),
		Tick:         algorithms.Tick(l.Algorithm, max(l.Limit, l.Burst), l.Window.Microseconds()),
		Entitlements: units,
		Bursts:       burst,
		Lending:      quantity.PPM(l.LendingLimit),
		Borrowing:    quantity.PPM(l.BorrowingLimit),
		Recovered:    algorithms.Recovers(l.Algorithm, l.Window.Microseconds()),
	}
	if l.Algorithm.Sliding() {
		b.ClockMargin = algorithms.ClockMargin
	}
	if l.Home() {
		b.Home, b.Lending, b.Borrowing = true, allocator.PPM, quantity.PPM(policy.Unlimited)
	}
	return b
}

// Key returns the key of a bucket in the region's store.
func (r *Rules) Key(id string) string {
	return store.BucketKey(r.Shards.Of(policy.BucketID(id).Entity()), id)
}

// Find returns the bucket with the id that a peer sent, or nil if this document has no such bucket.
func (r *Rules) Find(id string) *exchange.Bucket {
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

// Locate returns the limit of the given name that applies to the descriptors, and its bucket, or
// ErrNoSuchBucket.
func (r *Rules) Locate(name, domain string, descriptors map[string]string) (*policy.Limit,
	*exchange.Bucket, error) {
	for _, l := range r.matcher.Append(nil, domain, descriptors) {
		if l.Name == name {
			return l, r.bucket(l, l.Bucket(descriptors)), nil
		}
	}
	return nil, nil, ErrNoSuchBucket
}

// ErrNoSuchBucket says that no limit of the name applies to the descriptors.
var ErrNoSuchBucket = errors.New("no limit of this name and domain applies to these descriptors")

// Target returns what a script call must know of a bucket. existsUntil is the store time until
// which the bucket is known to be in the store.
func (r *Rules) Target(b *exchange.Bucket, existsUntil quantity.StoreTime) algorithms.Target {
	return algorithms.Target{Key: r.Key(b.ID), Terms: b.Terms(r.Region), ExistsUntil: existsUntil}
}
