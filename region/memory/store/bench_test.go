package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// BenchmarkDecide compares, on one redis-server, a bare round trip with one that decides a request
// and one that decides as many requests on one bucket as one call may.
func BenchmarkDecide(b *testing.B) {
	server := fixtures.Process(b)
	s := node(b, server, first)
	b.Run("ping", func(b *testing.B) {
		for b.Loop() {
			suite.Must(b, clientOf(s).Ping(b.Context()).Err())
		}
	})
	for _, requests := range []int{1, algorithms.MaxCosts} {
		name := "requests=" + strconv.Itoa(requests)
		costs := make([]quantity.Units, requests)
		for i := range costs {
			costs[i] = 1
		}
		calls := []algorithms.Decide{charge(name, algorithms.MaxUnits, costs...)}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := must(b, s.Decide(b.Context(),
					calls)[0]); admitted(d) != quantity.Units(requests) {
					b.Fatalf("%+v", d)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*requests), "ns/request")
		})
	}
}

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

// size is a state of a bucket whose memory is measured.
type size struct {
	only
	name  string
	bring func(*stage, bucket)
	less  func(*stage, bucket) // what to take from it, nil: nothing
	by    float64              // what to divide by
}

var sizes = []size{
	{name: "one decision", bring: used(1), by: 1},
	{name: "1000 units singly", bring: used(usual), by: 1},
	{name: "rows of 2 cells", bring: rows(1, false), by: 1},
	{name: "all rows", only: sliding, bring: rows(1, true), by: 1},
	{name: "of an entry", only: logOnly, bring: used(usual), less: used(1), by: usual - 1},
}

// bytes returns what a bucket in a state occupies in the server: its key, hash and entry in the
// keyspace, by Redis' own reckoning, without that of its expiry.
func (st *stage) bytes(kind algorithms.Kind, bring func(*stage, bucket)) float64 {
	on := st.bucket(kind, usual)
	bring(st, on)
	n, err := clientOf(st.Store).MemoryUsage(context.Background(), BucketKey(Whole, on.id),
		0).Result()
	if err != nil {
		st.b.Fatal(err)
	}
	if err := clientOf(st.Store).Del(context.Background(),
		BucketKey(Whole, on.id)).Err(); err != nil {
		st.b.Fatal(err)
	}
	return float64(n)
}

// size measures the memory of a bucket of one algorithm.
func (st *stage) size(b *testing.B, s size, kind algorithms.Kind) string {
	var all []float64
	for b.Loop() {
		n := st.bytes(kind, s.bring)
		if s.less != nil {
			n -= st.bytes(kind, s.less)
		}
		all = append(all, n/s.by)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(all), "bytes/bucket")
	return fmt.Sprintf("%.4g", median(all))
}
