package queue

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/quantity"
)

// BenchmarkBatcher is what it costs the node to make the calls of a round trip out of requests that
// waited for it: each on a bucket of its own, or eight on each.
func BenchmarkBatcher(b *testing.B) {
	n := idle(b, minute)
	for _, requests := range []int{64, maxBatched} {
		for _, each := range []int{1, 8} {
			buckets := requests / each
			waited := make([]Ask, requests)
			for i := range waited {
				waited[i] = numbered(n.of(fmt.Sprint("account", i%buckets)), 1, true)
			}
			b.Run(fmt.Sprintf("requests=%d/buckets=%d", requests, buckets), func(b *testing.B) {
				batch := make([]Ask, requests)
				b.ReportAllocs()
				for b.Loop() {
					copy(batch, waited) // the groups use its memory
					calls, _ := n.lane().calls(group(batch))
					if len(calls) != buckets || len(calls[0].Costs) != each ||
						calls[0].Costs[0] != quantity.Units(1) {
						b.Fatalf("%d calls, the first %+v", len(calls), calls[0])
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*requests),
					"ns/request")
			})
		}
	}
}
