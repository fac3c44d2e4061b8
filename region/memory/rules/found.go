package rules

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/tally"
)

// MaxFound bounds the buckets that a node holds in memory under one document, some 500 bytes each
// with keys of 30 bytes. A further bucket displaces one that was not asked for lately. A displaced
// bucket is made anew when it is asked for again.
const MaxFound = foundSets * foundWays

const (
	foundSets = 1 << 13
	foundWays = 4
	// pageSets is how many sets are made at a time, when a bucket of one of them is asked for.
	pageSets = 1 << 6
)

// usualIDBytes is room for most bucket ids.
const usualIDBytes = 256

// found holds the buckets that were asked for lately, in sets chosen by the hash of the id. It is
// read without locks. If two requests are the first to ask for a bucket at the same time, two may
// be made. Only one of them is found later.
type found struct {
	pages   [foundSets / pageSets]atomic.Pointer[page]
	hottest tally.Sketch // what buckets counted that were displaced, or looked at
}

type page [pageSets]set

type set [foundWays]atomic.Pointer[Applied]

var seed = maphash.MakeSeed()

// Hash returns the hash of a bucket's id. It differs in each process, so nobody can choose it.
func Hash(id string) uint64 { return maphash.String(seed, id) }

// get returns the bucket with the id, or nil.
func (s *set) get(id []byte, hash uint64) *Applied {
	for i := range s {
		a := s[i].Load()
		if a == nil || a.Hash != hash || a.id != string(id) {
			continue
		}
		if !a.recent.Load() {
			a.recent.Store(true)
		}
		return a
	}
	return nil
}

// put gives a bucket an empty place, or else that of one that was not asked for lately. It returns
// the bucket whose place that was, or nil.
func (s *set) put(a *Applied) (displaced *Applied) {
	for i := range s {
		if s[i].CompareAndSwap(nil, a) {
			return nil
		}
	}
	for i := range s {
		if !s[i].Load().recent.Load() {
			return s[i].Swap(a)
		}
	}
	for i := range s {
		s[i].Load().recent.Store(false)
	}
	return s[a.Hash>>32%foundWays].Swap(a)
}

// Match returns the limits that apply to a request.
func (r *Rules) Match(domain string, descriptors map[string]string) []*Applied {
	return r.Append(nil, domain, descriptors)
}

// Append appends to all the limits that apply to a request: those of the newest document in its
// order, then limits of older documents that requests are still charged to. If the buckets were
// asked for lately, Append allocates only to grow all.
func (r *Rules) Append(all []*Applied, domain string, descriptors map[string]string) []*Applied {
	var few [16]*policy.Limit
	for _, l := range r.matcher.Append(few[:0], domain, descriptors) {
		var room [usualIDBytes]byte
		all = append(all, r.apply(l, l.AppendBucket(room[:0], descriptors)))
	}
	if r.charged != nil {
		all = r.appendCharged(all, domain, descriptors)
	}
	return all
}

// AppendList is Append for a list of descriptors in order; see [policy.Matcher.AppendList].
func (r *Rules) AppendList(all []*Applied, domain string,
	list []policy.KeyValue) (applied []*Applied, exempt *policy.Exemption) {
	var few [16]*policy.Limit
	met, exempt := r.matcher.AppendList(few[:0], domain, list)
	for _, l := range met {
		var room [usualIDBytes]byte
		all = append(all, r.apply(l, l.AppendBucketOf(room[:0], list)))
	}
	for _, older := range r.charged {
		met, _ := older.matcher.AppendList(nil, domain, list)
		for _, l := range met {
			if older.limits[l] {
				all = append(all, r.apply(l, l.AppendBucketOf(nil, list)))
			}
		}
	}
	return all, exempt
}

// Exempt returns the exemption of the newest document that a request meets; see
// [policy.Matcher.Exempt].
func (r *Rules) Exempt(domain string, descriptors map[string]string) *policy.Exemption {
	return r.matcher.Exempt(domain, descriptors)
}

// Stray returns the name of a descriptor whose value meets no condition; see [policy.Matcher.Stray].
func (r *Rules) Stray(domain string, descriptors map[string]string, list []policy.KeyValue) string {
	return r.matcher.Stray(domain, descriptors, list)
}

// Domain returns what holds for a domain, and whether the newest document has it.
func (r *Rules) Domain(name string) (rule policy.DomainRules, known bool) {
	return r.matcher.Domain(name)
}

// appendCharged appends to all the limits of older documents that a request is still charged to.
func (r *Rules) appendCharged(all []*Applied, domain string,
	descriptors map[string]string) []*Applied {
	for _, older := range r.charged {
		for _, l := range older.matcher.Append(nil, domain, descriptors) {
			if older.limits[l] {
				all = append(all, r.apply(l, []byte(l.Bucket(descriptors))))
			}
		}
	}
	return all
}

// Found returns the bucket with the id if it was asked for lately, or nil.
func (r *Rules) Found(id string) *Applied {
	hash := Hash(id)
	return r.set(hash).get([]byte(id), hash)
}

// ForgetDenials forgets what was denied of a bucket before units of it came back at a store time.
func (r *Rules) ForgetDenials(bucket string, at quantity.StoreTime) {
	if a := r.Found(bucket); a != nil {
		a.Held.Forget(at)
	}
}

// set returns the set of a bucket with the hash.
func (r *Rules) set(hash uint64) *set {
	at, n := &r.found.pages[hash%foundSets/pageSets], hash%pageSets
	if p := at.Load(); p != nil {
		return &p[n]
	}
	at.CompareAndSwap(nil, &page{})
	return &at.Load()[n]
}

// apply returns the limit's bucket with the id.
func (r *Rules) apply(l *policy.Limit, id []byte) *Applied {
	hash := maphash.Bytes(seed, id)
	its := r.set(hash)
	if a := its.get(id, hash); a != nil {
		return a
	}
	a := r.newApplied(l, policy.BucketID(id), hash)
	if displaced := its.put(a); displaced != nil {
		r.found.hottest.Add(displaced.Bucket.ID, displaced.Hash, displaced.Tally.Take())
	}
	return a
}

func (r *Rules) newApplied(l *policy.Limit, id policy.BucketID, hash uint64) *Applied {
	parts := r.split(l, id)
	// The id is a part of the key, so that the two take memory once.
	key := r.Key(string(id))
	b := parts.bucket
	b.ID = key[len(key)-len(id):]
	a := &Applied{Hash: hash, id: b.ID, Limit: l, Bucket: &b, Reserve: parts.reserve,
		EnvoyBurst: parts.envoys,
		Target: algorithms.LimitTarget{Target: algorithms.Target{Key: key, Terms: parts.terms},
			Shadow: l.Shadow, Alternative: l.Alternative}}
	if a.reach = a.Capacity(); !l.Algorithm.Bucket() || l.Borrows() {
		a.reach = b.Reach(r.Region)
	}
	return a
}
