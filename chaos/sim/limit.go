package sim

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/oracle"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/store"
)

// limit is one entry of the document.
type limit struct {
	w       *world
	policy  *policy.Limit
	rule    oracle.Limit
	buckets []*bucket // by key
}

// bucket is a limit applied to a key, as it is judged: from outside, by what was answered.
type bucket struct {
	limit   *limit
	key     int
	id      string
	spec    *exchange.Bucket // nil until a node has told
	judge   *oracle.Judge
	moved   bool  // it is among the world's
	excused int64 // up to this cell its ledger may be wrong for a while, by a printed term
	// labels is what each window admitted, less refunds: of a fixed window it is known at once.
	labels map[int64]int64
	// allowances are what may be admitted above the ceiling, when, and for what has happened.
	allowances         []allowance
	paces              []pace               // by region: how fast it admitted
	clocked, forClocks int64                // how far apart clocks were when more was allowed for it, and how much
	lost               []int64              // by region: the last cell that a loss of its store may concern
	gone               []map[*node]sighting // by region: it was deleted there, and nobody has asked for it since; who knew it
	local              map[spentAlone]bool  // who has admitted without the store, and when
	seen               map[seenRow]algorithms.Row
	refunded           bool
}

// sighting is until when a node knew a bucket to be in its store, by the store's time, and in which life.
type sighting struct {
	known int64
	life  int
}

type seenRow struct {
	region int
	peer   string
	cell   int64
}

// clockSlack is how far clocks may be from the judge's, which only keeps labels from being made up.
const clockSlack = 3 * time.Hour

func newLimit(w *world, p *policy.Limit) *limit {
	l := &limit{w: w, policy: p, rule: oracle.Limit{Limit: max(p.Limit-w.plan.lowered, 1), Burst: p.Burst, Window: p.Window, Algorithm: string(p.Algorithm), ClockSlack: clockSlack}}
	for k, key := range w.plan.Keys {
		b := &bucket{limit: l, key: k, id: string(p.Bucket(w.plan.descriptors(key))), judge: oracle.New(l.rule), labels: map[int64]int64{},
			lost: make([]int64, len(w.plan.Regions)), local: map[spentAlone]bool{}, paces: make([]pace, len(w.plan.Regions)), excused: -1, gone: make([]map[*node]sighting, len(w.plan.Regions)), seen: map[seenRow]algorithms.Row{}}
		l.buckets = append(l.buckets, b)
	}
	return l
}

// descriptors are those of a request of a key: limits are keyed by the account or, where stores are divided, by the address.
func (p *Plan) descriptors(key string) map[string]string {
	if p.Shards > 1 {
		return map[string]string{"account": key, "address": "at " + key}
	}
	return map[string]string{"account": key}
}

// keyOf returns the key of a bucket in its region's store.
func (w *world) keyOf(b *bucket) string {
	return store.BucketKey(w.shards.Of(policy.BucketID(b.id).Entity()), b.id)
}

// kind is the limit's algorithm.
func (l *limit) kind() algorithms.Kind { return l.policy.Algorithm }

// concern returns the buckets that a request of a domain and key is charged to.
func (w *world) concern(domain string, key int) (all []*bucket) {
	for _, l := range w.limits {
		if l.policy.Domain == domain {
			all = append(all, l.buckets[key])
		}
	}
	return all
}

// entitle has a node tell what the buckets are.
func (w *world) entitle() {
	n := w.regions[0].nodes[0]
	for _, l := range w.limits {
		for k := range l.buckets {
			for _, spec := range n.live.Buckets(w.question(l.policy.Domain, k)) {
				if spec.ID == l.buckets[k].id {
					l.buckets[k].spec = spec
				}
			}
		}
	}
}

// bucket returns the bucket of an id, nil if it is of no document.
func (w *world) bucket(id string) *bucket {
	for _, l := range w.limits {
		for _, b := range l.buckets {
			if b.id == id {
				return b
			}
		}
	}
	return nil
}

// exposure is the bucket's limit in the numbers that bounds are computed from.
func (b *bucket) exposure(nodes int) allocator.Exposure {
	p, k := b.limit.policy, b.limit.kind()
	e := allocator.Exposure{Limit: p.Limit, Window: p.Window.Microseconds(), Cell: p.Cell().Microseconds(),
		Sliding: k.Sliding(), Log: k == algorithms.SlidingWindowLog, Bucket: k.Bucket(), Tokens: k == algorithms.TokenBucket,
		Recovered: algorithms.Recovers(k, p.Window.Microseconds()), Lending: int64(p.LendingLimit), Borrowing: int64(p.BorrowingLimit),
		Reserve: int64(p.Reserve()), Nodes: int64(nodes), Guard: algorithms.ClockGuard}
	if p.Home() {
		e.Lending, e.Borrowing = allocator.PPM, int64(policy.Unlimited)
	}
	for rotation := range len(p.Weights) {
		e.Splits = append(e.Splits, allocator.SplitOf(p.Limit, p.Burst, p.Weights, uint64(rotation), p.Home()))
	}
	return e
}

// bound is what the printed bounds of a cause come to at most.
func bound(e allocator.Exposure, cause string) (most int64) {
	for _, b := range allocator.Bounds(e) {
		if b.Cause == cause {
			most = max(most, b.Most)
		}
	}
	return most
}
