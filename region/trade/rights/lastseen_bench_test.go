package rights

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/quotad/quotad/quantity"
)

// BenchmarkRemembered is the memory that a million buckets take of which a node notes that it used
// them, and half a million of which it keeps how much.
func BenchmarkRemembered(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for what, size := range map[string]struct {
		buckets   int
		recovered bool
	}{"buckets": {1_000_000, false}, "uses": {500_000, true}} {
		b.Run(what, func(b *testing.B) {
			for range b.N {
				before := heap()
				s := newLastSeen("us", Memory{}, atTime(1), atTime(1))
				for i := range size.buckets {
					bucket := lasting(fmt.Sprintf("1:4:long7:account12:%012d", i))
					bucket.Recovered = size.recovered
					s.used(bucket, shown(0, quantity.Units(i)), 1)
				}
				b.ReportMetric(float64(heap()-before)/float64(size.buckets), "B/bucket")
				runtime.KeepAlive(s)
			}
		})
	}
}
