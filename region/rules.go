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
	peers    []string                             // the other regions
	splits   map[*policy.Limit][]map[string]int64 // entitlements by region, for each rotation of remainders
}

func newRules(d *policy.Document, region string) (*rules, error) {
	r := &rules{document: d, epoch: d.Epoch().String(), matcher: d.Compile(), region: region,
		splits: make(map[*policy.Limit][]map[string]int64, len(d.Limits))}
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
			split := make(map[string]int64, len(d.Regions))
			for n, units := range allocator.Entitlements(l.Limit, l.Weights, uint64(rotation)) {
				split[d.Regions[n].Name] = units
			}
			r.splits[l] = append(r.splits[l], split)
		}
	}
	return r, nil
}

// bucket returns what the exchange must know of a limit applied to a key.
func (r *rules) bucket(l *policy.Limit, id policy.BucketID) *exchange.Bucket {
	return &exchange.Bucket{
		ID:           string(id),
		Epoch:        r.epoch,
		Kind:         algorithms.Kind(l.Algorithm),
		Limit:        l.Limit,
		Window:       l.Window.Microseconds(),
		Entitlements: r.splits[l][id.Hash()%uint64(len(r.splits[l]))],
		Lending:      int64(l.LendingLimit),
		Borrowing:    int64(l.BorrowingLimit),
	}
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

// terms returns what the scripts must know of a bucket in a region.
func terms(b *exchange.Bucket, region string) algorithms.Terms {
	return algorithms.Terms{Kind: b.Kind, Window: b.Window, Entitlement: b.Entitlements[region]}
}

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
			target: algorithms.Target{Key: store.BucketKey(b.ID), Terms: terms(b, r.region), Shadow: l.Shadow}}
	}
	return all
}
