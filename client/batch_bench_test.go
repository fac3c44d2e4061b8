package client_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/client"
)

// BenchmarkCheck asks a server of this process over a loopback connection, alone and together, by
// one caller and by 256. The server decides nothing, so this is the cost of calls.
func BenchmarkCheck(b *testing.B) {
	for _, callers := range []int{1, 256} {
		for name, unbatched := range map[string]bool{"batched": false, "unbatched": true} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				s := serve(b, &served{})
				c := dialed(b, client.Options{Timeout: 10 * time.Second, Unbatched: unbatched}, s.at)
				benchmarkCheck(b, c, callers)
				st := c.Stats()
				b.ReportMetric(float64(st.Batched)/float64(max(st.Batches, 1)), "requests/batch")
			})
		}
	}
}

// benchmarkCheck has callers make b.N calls together.
func benchmarkCheck(b *testing.B, c *client.Client, callers int) {
	if _, err := c.Check(context.Background(), request(1)); err != nil {
		b.Fatal(err)
	}
	var made atomic.Int64
	var all sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		all.Go(func() {
			for made.Add(1) <= int64(b.N) {
				if d, err := c.Check(context.Background(), request(1)); err != nil || !d.Allowed {
					b.Error(d, err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
