package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/quantity"
)

// itemBuckets is how many buckets the calls of BenchmarkItems go round, so that none is used up.
const itemBuckets = 4096

// BenchmarkItems measures, on one redis-server, what a decision costs the server when 1 or 64 of
// them, each on a bucket of its own that was used before, go to the store together.
func BenchmarkItems(b *testing.B) {
	st := &stage{b: b, Store: node(b, fixtures.Process(b), first)}
	for _, kind := range algorithms.Kinds {
		calls := make([]algorithms.Decide, itemBuckets)
		for i := range calls {
			on := st.bucket(kind, usual)
			calls[i] = algorithms.Decide{Fence: under(epoch), Commit: true,
				Costs: []quantity.Units{1}, Buckets: []algorithms.LimitTarget{
					{Target: algorithms.Target{Key: BucketKey(Whole, on.id), Terms: on.terms}}}}
		}
		for chunk := range slices.Chunk(calls, 64) {
			st.with(b).admitAll(chunk)
		}
		for _, buckets := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/buckets=%d", kind, buckets), func(b *testing.B) {
				st.with(b).items(b, calls, buckets)
			})
		}
	}
}

// items decides so many of the calls at a time, again and again from the first.
func (st *stage) items(b *testing.B, calls []algorithms.Decide, buckets int) {
	from, decided := 0, 0
	scripts, micros := st.scripts()
	b.ReportAllocs()
	for b.Loop() {
		st.admitAll(calls[from : from+buckets])
		from, decided = (from+buckets)%len(calls), decided+buckets
	}
	scriptsAfter, microsAfter := st.scripts()
	b.ReportMetric(float64(microsAfter-micros)/float64(decided), "redis-us/bucket")
	b.ReportMetric(float64(scriptsAfter-scripts)*float64(buckets)/float64(decided), "scripts/op")
}

// admitAll makes calls of one request each, which must be admitted.
func (st *stage) admitAll(calls []algorithms.Decide) {
	for _, r := range st.Decide(st.b.Context(), calls) {
		if d := must(st.b, r); admitted(d) != 1 {
			st.b.Fatalf("%+v", d)
		}
	}
}
