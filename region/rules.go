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

// split is what each region is entitled to of a limit, by region.
type split struct{ units, burst map[string]int64 }

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
			whole := allocator.SplitOf(l.Limit, l.Burst, l.Weights, uint64(rotation), l.Home())
			parts := split{units: make(map[string]int64, len(d.Regions)), burst: make(map[string]int64, len(d.Regions))}
			for n, known := range d.Regions {
				parts.units[known.Name], parts.burst[known.Name] = whole.Units[n], whole.Burst[n]
			}
			r.splits[l] = append(r.splits[l], parts)
		}
	}
	return r, nil
}

// bucket returns what the exchange must know of a limit applied to a key. In home mode the home region lends all that it
// has, and there is nothing that a borrowing limit could be a part of.
func (r *rules) bucket(l *policy.Limit, id policy.BucketID) *exchange.Bucket {
	parts := r.splits[l][id.Hash()%uint64(len(r.splits[l]))]
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
		b.Guard = algorithms.ClockGuard
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
	limit  *policy.Limit
	bucket *exchange.Bucket
	target algorithms.Target
}

// match returns the limits that apply to a request.
func (r *rules) match(q Request) []applied {
	var found [8]*policy.Limit
	limits := r.matcher.Append(found[:0], q.Domain, q.Descriptors)
	all := make([]applied, len(limits))
	for i, l := range limits {
		b := r.bucket(l, l.Bucket(q.Descriptors))
		all[i] = applied{limit: l, bucket: b,
			target: algorithms.Target{Key: r.key(b.ID), Terms: b.Terms(r.region), Shadow: l.Shadow}}
	}
	return all
}
