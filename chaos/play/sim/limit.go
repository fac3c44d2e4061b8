package sim

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// limit is one entry of the document.
type limit struct {
	w        *world
	policy   *policy.Limit // in the first document that has it: what no document changes
	versions []entry       // in every document that has it, by version
	rule     oracle.Limit
	buckets  []*bucket // by key
}

// bucket is a limit applied to a key. It is judged from outside, by the answers to requests.
type bucket struct {
	limit *limit
	key   int
	id    string
	spec  *exchange.Bucket // nil until entitle has asked a node for it
	judge *oracle.Judge
	moved bool // it is in world.moved
	// up to this cell a printed bound excuses mistakes in its ledger; -1: none
	excused quantity.Cell
	// labels is what each window admitted less refunds. A fixed window's excess shows there at
	// once.
	labels map[int64]quantity.Units
	// allowances are the excesses above the ceiling that are allowed for what has happened.
	allowances []allowance
	paces      []pace  // of admission, by region
	flows      []flows // of admitted units and rights, by region
	// lost is the last cell that a loss of the store may concern, by region.
	lost []quantity.Cell
	// gone is set, by region, from the deletion of the bucket until a node uses or restores it.
	gone []*deletion
	// closed is what its store has lost last, and live that a decision was seen after that, by region.
	closed []closing
	live   []bool
	// waived is when its store had lost it, µs, that an operator's word was last about, by region.
	waived []int64
	// unseen says, by region, that its ledger could not be read when rights may have moved, because
	// no node lived that knows its documents. Then seen lacks rows.
	unseen   []bool
	local    map[spentAlone]quantity.Units // admitted without the store
	fenced   map[spentFenced]quantity.Units
	late     map[spentAfter]quantity.Units // of what nodes held when their machines had stood still
	seen     map[seenRow]algorithms.Row
	refunded bool
}

// deletion is what is known of a bucket that was deleted.
type deletion struct {
	at      quantity.StoreTime // the latest time that the store can have shown by then
	knew    map[*node]sighting // by the nodes that lived
	noticed bool               // a node has found the bucket lost since
}

// sighting says until which store time a node knew a bucket to be in its store, and in which life.
type sighting struct {
	known quantity.StoreTime
	life  int
}

type seenRow struct {
	region int
	peer   string
	cell   quantity.Cell
}

// clockSlack is how far store clocks may be from the judge's clock. The judge needs it only to
// refuse made-up labels.
const clockSlack = 3 * time.Hour

func newLimit(w *world, versions []entry) *limit {
	p := versions[0].Limit
	var most, burst quantity.Units
	for _, v := range versions {
		most, burst = max(most, v.Limit.Limit), max(burst, v.Burst)
	}
	l := &limit{w: w, policy: p, versions: versions,
		rule: oracle.Limit{Limit: int64(max(most-w.plan.lowered, 1)),
			Burst: int64(burst), Window: p.Window, Assigned: p.Assign != nil, Algorithm: string(p.Algorithm),
			Calendar: judgedBy(p), ClockSlack: clockSlack}}
	l.rule.Rates = l.rates
	for k, key := range w.plan.Keys {
		b := &bucket{limit: l, key: k, id: string(p.Bucket(w.plan.descriptors(key))),
			judge: oracle.New(l.rule), labels: map[int64]quantity.Units{},
			lost: make([]quantity.Cell, len(w.plan.Regions)), local: map[spentAlone]quantity.Units{}, fenced: map[spentFenced]quantity.Units{},
			late:  map[spentAfter]quantity.Units{},
			flows: make([]flows, len(w.plan.Regions)), paces: make([]pace, len(w.plan.Regions)),
			excused: -1, unseen: make([]bool, len(w.plan.Regions)),
			gone: make([]*deletion, len(w.plan.Regions)), closed: make([]closing, len(w.plan.Regions)),
			live: make([]bool, len(w.plan.Regions)), waived: make([]int64, len(w.plan.Regions)), seen: map[seenRow]algorithms.Row{}}
		l.buckets = append(l.buckets, b)
	}
	return l
}

// descriptors returns the descriptors of a request of a key: limits are keyed by the account or, if
// stores are divided into shards, by the address.
func (p *Plan) descriptors(key string) map[string]string {
	if p.Shards > 1 {
		return map[string]string{"account": key, "address": "at " + key}
	}
	return map[string]string{"account": key}
}

// keyOf returns the key of a bucket in a region's store.
func (w *world) keyOf(b *bucket) string {
	return store.BucketKey(w.shards.Of(policy.BucketID(b.id).Entity()), b.id)
}

// kind returns the limit's algorithm.
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

// entitle asks a node for the spec of each bucket.
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

// bucket returns the bucket with an ID, nil if no limit has it.
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

// terms returns the terms on which a region's store works on the bucket while documents of an epoch
// are open there: those of a node that knows them. known is false if no node lives that does.
func (b *bucket) terms(r *region, epoch string) (t algorithms.Terms, known bool) {
	if len(r.w.plan.Versions) == 0 {
		return b.spec.Terms(r.name), true
	}
	for _, n := range r.nodes {
		if n.live == nil || n.live.Epoch() != epoch {
			continue
		}
		if spec := n.live.Find(b.id); spec != nil {
			return spec.Terms(r.name), true
		}
	}
	return t, false
}
