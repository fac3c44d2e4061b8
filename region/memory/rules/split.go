package rules

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"

	"github.com/quotad/quotad/policy"
)

// split is what each region's store holds of a limit: what the region is entitled to, less its
// reserve. A rotation decides who gets remainders and homes.
type split struct {
	bucket  exchange.Bucket  // without an ID
	terms   algorithms.Terms // of this region's store
	reserve *Reserve         // of this region; nil: the limit keeps none
	envoys  quantity.Units   // the region's part of max_burst
}

// Reserve is what a region keeps of a limit out of its store (local_reserve), for nodes that cannot
// reach the store. Every region can compute every other region's reserve, and so knows what that
// region may lend.
type Reserve struct {
	Units, Burst quantity.Units // 0 if the entitlement is too small
	// units, or burst of a bucket, that the stores of all regions hold together
	stored quantity.Units
}

// splitOf returns the split of a limit for keys of a hash, by the documents that bind: of each
// region the least of what they give it.
func (r *Rules) splitOf(l *policy.Limit, s barrier.Standing, hash uint64) (parts split) {
	least := barrier.Least(s.Binding, hash)
	if r.View.Unsure || r.View.Fence != nil || s.Returning {
		least[r.Region] = policy.Part{}
	}
	units, burst := make(map[string]quantity.Units, len(least)),
		make(map[string]quantity.Units, len(least))
	reserves := Reserve{Units: least[r.Region].Reserve, Burst: least[r.Region].ReserveBurst}
	for region, p := range least {
		units[region], burst[region] = p.Units, p.Burst
		if l.Algorithm.Bucket() {
			reserves.stored += p.Burst
		} else {
			reserves.stored += p.Units
		}
	}
	if slices.ContainsFunc(s.Binding, func(e barrier.Entry) bool { return e.Limit != nil && e.Limit.Reserve() > 0 }) {
		parts.reserve = &reserves
	}
	parts.bucket = r.bucketOf(l, s.Binding, units, burst)
	if len(s.Binding) > 1 {
		for _, e := range s.Binding {
			parts.bucket.LentBefore = max(parts.bucket.LentBefore, e.Lent(r.Region, hash))
		}
	}
	parts.bucket.LendsBefore = s.LendsBefore
	parts.terms = parts.bucket.Terms(r.Region)
	parts.envoys = least[r.Region].Envoys
	return parts
}

// bucketOf returns what the buckets of a limit have in common. In home mode the home region may
// lend all it has. The other regions' entitlements are 0, so no borrowing limit applies: it would
// be a part of nothing.
func (r *Rules) bucketOf(l *policy.Limit, binding []barrier.Entry,
	units, burst map[string]quantity.Units) exchange.Bucket {
	window, terms := l.Window.Microseconds(), binding[0].Terms()
	for _, e := range binding[1:] {
		terms = terms.And(e.Terms())
	}
	b := exchange.Bucket{
		Name:         l.Name,
		Epoch:        r.Epoch,
		Kind:         l.Algorithm,
		Limit:        terms.Limit,
		Window:       window,
		Cell:         l.Cell().Microseconds(),
		Entitlements: units,
		Bursts:       burst,
		Home:         true,
		Assigned:     l.Assign != nil,
		Capped:       l.Capped(),
		Always:       l.Charge == policy.ChargeAlways,
		Lending:      allocator.PPM,
		Borrowing:    quantity.PPM(policy.Unlimited),
		Recovered:    algorithms.Recovers(l.Algorithm, window),
	}
	if c, ok := l.Calendar(); ok {
		b.Calendar = c
	}
	if l.Algorithm.Sliding() {
		b.ClockMargin = algorithms.ClockMargin
	}
	if !terms.Home {
		b.Home, b.Lending, b.Borrowing = false, terms.Lending, terms.Borrowing
	}
	b.Tick = algorithms.Tick(l.Algorithm, terms.Largest, window)
	b.Agreed = digestOf(&b)
	return b
}

// digestOf returns a digest of all that two regions must agree on to trade a bucket.
func digestOf(b *exchange.Bucket) uint64 {
	var text []byte
	number := func(n int64) { text = binary.AppendVarint(text, n) }
	number(int64(b.Limit))
	number(int64(b.Lending))
	number(int64(b.Borrowing))
	if b.Home {
		number(1)
	}
	for _, region := range slices.Sorted(maps.Keys(b.Entitlements)) {
		if b.Entitlements[region] > 0 || b.Bursts[region] > 0 {
			text = append(append(text, region...), 0)
			number(int64(b.Entitlements[region]))
			number(int64(b.Bursts[region]))
		}
	}
	return xxhash.Sum64(text)
}
