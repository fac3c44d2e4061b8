package sim

import (
	"regexp"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/memory/store"
)

// spread changes a plan so that its stores are divided into shards, its limits apply to the same
// requests but are keyed by the account or by the address, which are in different shards, and some
// calls have several requests. It has a random stream of its own, so that seeds keep their meaning
// without it. With the Lua it changes only the calls, because the embedded Redis is not divided.
func spread(p *Plan) {
	random := p.random(forSpanning, 0)
	p.Together = int64(random.IntN(12))
	if p.Lua || random.IntN(4) == 0 {
		return
	}
	p.Shards = 2 + random.IntN(3)
	if p.light() {
		p.Document = domains.ReplaceAllString(p.Document, "domain: api,")
	}
	lines := strings.Split(p.Document, "\n")
	for i, line := range lines {
		if strings.Contains(line, "key: [account]") && random.IntN(2) == 0 {
			lines[i] = strings.Replace(line, "key: [account]", "key: [address]", 1)
		}
	}
	p.Document = strings.Join(lines, "\n")
}

// light reports whether one request may meet all limits of the plan together: with three logs it
// may not.
func (p *Plan) light() bool {
	document, err := p.document(1)
	if err != nil {
		return false
	}
	var all algorithms.Batch
	for _, l := range document.Limits {
		all.Counts(l.Algorithm)
	}
	return all.Load() <= algorithms.MaxLoad
}

// spans reports whether the buckets of a request are in several shards.
func (w *world) spans(all []*bucket) bool {
	return slices.ContainsFunc(all, func(b *bucket) bool {
		return store.ShardOf(w.keyOf(b)) != store.ShardOf(w.keyOf(all[0]))
	})
}

var domains = regexp.MustCompile(`domain: api[0-9]*,`)

// together returns the number of requests in the next call of an act.
func (o *offering) together() int {
	if o.w.plan.Together < 2 || o.random.IntN(3) > 0 {
		return 1
	}
	return 1 + int(o.random.Int64N(o.w.plan.Together))
}
