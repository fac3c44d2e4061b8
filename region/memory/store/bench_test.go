package store

import (
	"strconv"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// BenchmarkDecide compares, on one redis-server, a bare round trip with one that decides a request
// and one that decides a hundred requests on one bucket, as the batcher sends them.
func BenchmarkDecide(b *testing.B) {
	server := fixtures.Process(b)
	s := node(b, server, first)
	b.Run("ping", func(b *testing.B) {
		for b.Loop() {
			suite.Must(b, clientOf(s).Ping(b.Context()).Err())
		}
	})
	for _, requests := range []int{1, 100} {
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
