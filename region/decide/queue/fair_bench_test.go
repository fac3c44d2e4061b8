package queue

import (
	"strconv"
	"testing"

	"github.com/quotad/quotad/policy"
)

// BenchmarkQueue is what a place in the queue costs, among a thousand requests that wait: of one
// bucket, of many, of many callers.
func BenchmarkQueue(b *testing.B) {
	limit := &policy.Limit{Name: "a"}
	for name, of := range map[string]func(i int) Ask{
		"one bucket":   func(i int) Ask { return queuedAs("", limit, "k", 1, 0) },
		"many buckets": func(i int) Ask { return queuedAs("", limit, strconv.Itoa(i), 1, 0) },
		"many callers": func(i int) Ask {
			return queuedAs(strconv.Itoa(i), limit, strconv.Itoa(i), 1, 0)
		},
	} {
		b.Run(name, func(b *testing.B) {
			q := newFairQueue(queueLength)
			all := make([]Ask, 1000)
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
