package admit

import (
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/decide/queue"
)

// BenchmarkRefusal is what a request costs that is refused because the queue is full: alone, and each
// of a batch.
func BenchmarkRefusal(b *testing.B) {
	n := unstarted(b, 1, documents.Parse(b, 1, hereAndThere,
		"name: minute, limit: 100, window: 1m"))
	q := request("v")
	n.fill(b, q)
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if d, err := n.Check(b.Context(), q); !queue.IsOverload(err) {
				b.Fatalf("%+v, %v", d, err)
			}
		}
	})
	b.Run("batch of 100", func(b *testing.B) {
		all := make([]Request, 100)
		for i := range all {
			all[i] = q
		}
		b.ReportAllocs()
		for b.Loop() {
			if d, err := n.CheckBatch(b.Context(), all); err != nil || d[0].Reason != QueueFull {
				b.Fatalf("%+v, %v", d, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/request")
	})
}
