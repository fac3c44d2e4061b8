// Package rules makes the open limits documents ready for one region. It decides which limits apply
// to a request, what the region's store holds of each limit (the region's entitlement, less its
// reserve), and what the exchange and the scripts must know of a bucket. Rules do not change once
// made, and are safe for concurrent use.
package rules

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// Rules is the limits documents that are open in a region, as it applies them. The newest one
// matches requests. Package policy/barrier says which others still bind.
type Rules struct {
	Document *policy.Document // the newest
	View     *barrier.View    // by which these rules were made
	Epoch    string           // names the open documents, as the store's token does
	Region   string
	Peers    []string     // the other regions of the open documents, sorted
	Shards   store.Shards // of the region's store
	// Newest is the epoch of the newest document as people read it.
	Newest string
	// Prefetches says that some limit says consistency: prefetch, and Replaces that some limit or
	// exemption replaces others.
	Prefetches, Replaces bool
	Charges              bool // some limit says charge: always
	// Tells has the domains with limits or exemptions that have metadata for Envoy.
	Tells map[string]bool

	matcher  *policy.Matcher
	splits   [][]split                          // by index of the limit, and by rotation; nil for a limit of open
	open     map[*policy.Limit]barrier.Standing // of limits that an older document still binds
	charged  []stillCharged
	excluded error // see Serves
	found    found
}

// stillCharged is a document that is not the newest, and the limits of it that requests are still
// charged to.
type stillCharged struct {
	matcher *policy.Matcher
	limits  map[*policy.Limit]bool
}

// ErrNoRegion says that a document does not have the region in which it is to be applied.
var ErrNoRegion = errors.New("has no region")

// New returns the rules of the documents that are open in a region whose store has these shards.
func New(v *barrier.View, shards store.Shards) *Rules {
	newest := v.Agenda.Newest()
	r := &Rules{Document: newest, View: v, Epoch: v.Agenda.String(), Newest: newest.Epoch().String(),
		Region: v.Region, Replaces: newest.Replaces(), Tells: newest.MetadataDomains(),
		Shards: shards, Peers: peersIn(v), matcher: newest.Compile(),
		splits: make([][]split, len(newest.Limits)),
		open:   map[*policy.Limit]barrier.Standing{}}
	for i := range newest.Limits {
		l := &newest.Limits[i]
		r.Charges = r.Charges || l.Charge == policy.ChargeAlways
		r.Prefetches = r.Prefetches || l.Consistency == policy.Prefetch
		s := v.Standing(l)
		if s.Open() {
			r.open[l] = s
			continue
		}
		for rotation := range newest.Regions {
			r.splits[i] = append(r.splits[i], r.splitOf(l, s, uint64(rotation)))
		}
	}
	r.keepCharged()
	r.excluded = r.excludes()
	return r
}

// keepCharged makes the rules match limits of older documents that requests are still charged to.
func (r *Rules) keepCharged() {
	of := map[*policy.Document]stillCharged{}
	for _, l := range r.View.Leftovers() {
		if !l.Charged {
			continue
		}
		r.open[l.Limit] = l.Standing
		its, ok := of[l.Document]
		if !ok {
			its = stillCharged{l.Document.Compile(), map[*policy.Limit]bool{}}
			of[l.Document] = its
			r.charged = append(r.charged, its)
		}
		its.limits[l.Limit] = true
	}
}

// peersIn returns the other regions of the open documents.
func peersIn(v *barrier.View) (peers []string) {
	for _, d := range v.Agenda.Documents() {
		for _, known := range d.Regions {
			if known.Name != v.Region && !slices.Contains(peers, known.Name) {
				peers = append(peers, known.Name)
			}
		}
	}
	slices.Sort(peers)
	return peers
}

// Serves returns why this region gets nothing of any limit and may not use what others lent it;
// nil: it has its part.
func (r *Rules) Serves() error { return r.excluded }

func (r *Rules) excludes() error {
	switch _, known := r.Document.RegionIndex(r.Region); {
	case r.Document.Removes(r.Region):
		return fmt.Errorf("policy %s removes region %q, which serves nothing: stop it, or add it again in a document of a higher version",
			r.Document.Epoch(), r.Region)
	case !known:
		return fmt.Errorf("policy %s %w %q, which serves nothing: stop it, or add it in a document of a higher version",
			r.Document.Epoch(), ErrNoRegion, r.Region)
	case r.Document.Fences(r.Region):
		return fmt.Errorf("policy %s fences region %q, which serves nothing: stop it, or take it from fenced in a document of a higher version",
			r.Document.Epoch(), r.Region)
	case r.View.Fence != nil:
		return fmt.Errorf("region %q is fenced, as region %s tells, and serves nothing: stop it, or write returned: {%s: %d} in a document of a higher version than any that is open (quotad regions return %s)",
			r.Region, r.View.Fence.From, r.Region, r.View.Fence.Life+1, r.Region)
	case r.View.Unsure:
		return fmt.Errorf("region %q lost its store and a journal, and serves nothing until every other region has told its documents: make them reachable. If it never served before, empty its Redis, remove this node's data_dir and start with --bootstrap", r.Region)
	}
	return nil
}

// split returns the split of a limit for a key.
func (r *Rules) split(l *policy.Limit, id policy.BucketID) *split {
	if s, ok := r.open[l]; ok {
		parts := r.splitOf(l, s, id.Hash())
		return &parts
	}
	all := r.splits[l.Index]
	return &all[id.Hash()%uint64(len(all))]
}

// bucket returns what the exchange must know of a limit applied to a key.
func (r *Rules) bucket(l *policy.Limit, id policy.BucketID) *exchange.Bucket {
	b := r.split(l, id).bucket
	b.ID = string(id)
	return &b
}

// Key returns the key of a bucket in the region's store.
func (r *Rules) Key(id string) string {
	return store.BucketKey(r.Shards.Of(policy.BucketID(id).Entity()), id)
}

// Find returns the bucket with the id that a peer sent, or nil if no document that binds has such a
// bucket.
func (r *Rules) Find(id string) *exchange.Bucket {
	if l := r.Limit(id); l != nil {
		return r.bucket(l, policy.BucketID(id))
	}
	return nil
}

// Limit returns the limit that has the bucket with an id, or nil if no document that binds has such a
// bucket.
func (r *Rules) Limit(id string) *policy.Limit {
	ref, err := policy.ParseBucketID(policy.BucketID(id))
	if err != nil {
		return nil
	}
	if l, ok := r.matcher.Entry(ref); ok {
		return l
	}
	for _, older := range r.charged {
		if l, ok := older.matcher.Entry(ref); ok && older.limits[l] {
			return l
		}
	}
	return nil
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

// Lookup returns the bucket with the id as requests find it, or nil if no document that binds has
// such a bucket. It does not take another bucket's place in the node's memory.
func (r *Rules) Lookup(id string) *Applied {
	if a := r.Found(id); a != nil {
		return a
	}
	ref, err := policy.ParseBucketID(policy.BucketID(id))
	if err != nil {
		return nil
	}
	if l, ok := r.matcher.Entry(ref); ok {
		return r.newApplied(l, policy.BucketID(id), Hash(id))
	}
	return nil
}
