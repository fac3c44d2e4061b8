package sim

import (
	"math"
	"regexp"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// vary changes a plan so that its limits say what the other draws leave out: weights of their own,
// some of them zero, borrowing limits, on_store_failure: allow, and shadow. Requests of all kinds
// of limits are refunded, and buckets are reset. It has a random stream of its own, so that seeds
// keep their meaning without it.
func vary(p *Plan) {
	random := p.random(forVaried, 0)
	limits := 0
	lines := strings.Split(p.Document, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "algorithm: ") {
			continue
		}
		limits++
		if random.IntN(3) == 0 {
			borrowing := []string{"0", "0.3", "1", "2"}[random.IntN(4)]
			line = endOfLimit.ReplaceAllString(line, ", borrowing_limit: "+borrowing+"$0")
		}
		if random.IntN(4) == 0 {
			line = onFailure.ReplaceAllString(line, ", on_store_failure: allow")
		}
		if random.IntN(4) == 0 && !strings.Contains(line, "consistency:") &&
			!strings.Contains(line, "assign:") {
			line = strings.Replace(line, "}", ", shadow: true}", 1)
		}
		if random.IntN(2) == 0 && !strings.Contains(line, "assign:") {
			line = strings.Replace(line, "}", ", weights: {"+weightsFor(random, p.regionNames())+"}}", 1)
		}
		lines[i] = line
	}
	p.Document = strings.Join(lines, "\n")
	p.Refunds = p.Refunds || random.IntN(2) == 0
	if random.IntN(3) > 0 { // a reset excuses much
		return
	}
	for range 1 + random.IntN(4) {
		p.Acts = append(p.Acts, Act{Do: Reset, At: random.Int64N(max(p.Heal, 1)),
			Region: random.IntN(len(p.Regions)), Peer: -1, Node: random.IntN(3),
			Limit: random.IntN(max(limits, 1)), Key: random.IntN(2)})
	}
}

var onFailure = regexp.MustCompile(`, on_store_failure: (local|deny)(, local_reserve: [0-9.]+)?`)

// reset has a node reset the use of a bucket in its region. It allows what is printed for that,
// also if the node hears no answer: the reply may have been lost.
func (w *world) reset(a Act, n *node) {
	b := w.limits[a.Limit%len(w.limits)].buckets[a.Key%len(w.plan.Keys)]
	n.at(w.now, func() {
		w.counts.Deeds[a.Do]++
		if err := n.live.Reset(b.limit.policy.Name, w.question(b.limit.policy.Domain, b.key)); err != nil {
			w.tell(n.r, "%s: %v", n.name, err)
		}
		b.allow(n.r, b.termReset(n.r.index), "reset in "+n.r.name, false)
		n.uses(b)
		n.drain()
	})
}

// allowBack allows units that were given back of what was charged at a time: for as long as they
// would have weighed, for ever in a bucket.
func (b *bucket) allowBack(r *region, charged quantity.StoreTime, units quantity.Units) {
	to := quantity.StoreTime(math.MaxInt64)
	switch window := b.limit.policy.Window.Microseconds(); b.limit.kind() {
	case algorithms.SlidingWindowLog:
		to = charged.Add(window)
	case algorithms.SlidingWindowCounter:
		to = b.cells().Opens(b.cells().At(charged) + 1).Add(window)
	}
	b.allowFor(r.clock().Add(min(r.storeAhead, 0)), to, units, "refunded in "+r.name)
}

// checkShadow checks a decision where one of the limits is a shadow limit: that never denies, and
// is held to nothing.
func (n *node) checkShadow(b *bucket, d admit.Decision) {
	if !d.Allowed && d.Limit == b.limit.policy.Name {
		n.w.breaks("shadow", "%s denies by the shadow limit %s: %+v", n.name, d.Limit, d)
	}
}

// openly allows what a node admits without its store because the limit says so: all.
func (n *node) openly(b *bucket, a oracle.Answer, d admit.Decision) {
	alone := d.Reason == admit.StoreFailureAllowed || d.Reason == admit.StoreFailureLocal
	if alone && b.limit.policy.OnStoreFailure == policy.StoreFailureAllow {
		b.allow(n.r, quantity.Units(a.Cost), "admitted without a store, as the limit says", false)
	}
}
