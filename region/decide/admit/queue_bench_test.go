package admit

import (
	"strconv"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy"
)

// BenchmarkRefusal is what a request costs that is refused because the queue is full: alone, and each
// of a batch.
func BenchmarkRefusal(b *testing.B) {
	n := unstarted(b, 1, documents.Parse(b, 1, hereAndThere,
		"name: minute, limit: 100, window: 1m"))
	r := n.tenure.Rules()
	for { // until no more may wait
		w := waiting{rules: r, applied: r.Match(asked(request("v"))), cost: 1,
			commit: true}.waits(24 * time.Hour)
		if err := n.queue.lanes.all[0].enqueue(b.Context(), w); err != nil {
			break
		}
	}
	q := request("v")
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if d, err := n.Check(b.Context(), q); !isOverload(err) {
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

// BenchmarkQueue is what a place in the queue costs, among a thousand requests that wait: of one
// bucket, of many, of many callers.
func BenchmarkQueue(b *testing.B) {
	limit := &policy.Limit{Name: "a"}
	for name, of := range map[string]func(i int) waiting{
		"one bucket":   func(i int) waiting { return queuedAs("", limit, "k", 1, 0) },
		"many buckets": func(i int) waiting { return queuedAs("", limit, strconv.Itoa(i), 1, 0) },
		"many callers": func(i int) waiting {
			return queuedAs(strconv.Itoa(i), limit, strconv.Itoa(i), 1, 0)
		},
	} {
		b.Run(name, func(b *testing.B) {
			q := newFairQueue(queueLength)
			all := make([]waiting, 1000)
			for i := range all {
				all[i] = of(i)
				q.push(all[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w := &all[i%len(all)]
				q.push(*w)
				q.take(q.next())
			}
		})
	}
}
