package client_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/client"
)

// A decision from memory allocates nothing, whether it admits or denies.
func TestDecisionsAllocateNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const requests = 10_000
		f := newFake(1 << 40)
		c := client.New(f, client.Options{Prefetch: true})
		ctx := context.Background()
		b := holding(t, c, 8*requests)
		synctest.Wait()
		before, _ := f.count()
		admit := func() {
			if d, err := b.Allow(ctx, 1); err != nil || !d.Allowed {
				t.Error(d, err)
			}
		}
		if n := testing.AllocsPerRun(requests, admit); n != 0 {
			t.Errorf("%v allocations to admit a request", n)
		}
		if after, _ := f.count(); after != before {
			t.Errorf("%d requests were asked about", after-before)
		}
		closed(t, c)

		f = newFake(0)
		c = client.New(f, client.Options{Prefetch: true})
		b = c.Bucket("api", account)
		deny := func() {
			if d, err := b.Allow(ctx, 1); err != nil || d.Allowed {
				t.Error(d, err)
			}
		}
		deny()
		before, _ = f.count()
		if n := testing.AllocsPerRun(requests, deny); n != 0 {
			t.Errorf("%v allocations to deny a request", n)
		}
		if after, _ := f.count(); after != before {
			t.Errorf("%d requests were asked about", after-before)
		}
		closed(t, c)
	})
}

// BenchmarkAllow decides requests on a hot bucket from memory, on one processor: the node gives
// units at once. It reports how many requests in a million the node was asked about, too.
func BenchmarkAllow(b *testing.B) {
	f := newFake(1 << 50)
	c := client.New(f, client.Options{Prefetch: true})
	bucket := c.Bucket("api", account)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if d, err := bucket.Allow(ctx, 1); err != nil || !d.Allowed {
			b.Fatal(d, err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	asked, _ := f.count()
	b.ReportMetric(float64(asked)/float64(b.N)*1e6, "asked/M")
	closed(b, c)
}

// BenchmarkAllowTogether is BenchmarkAllow for callers on all processors at a time.
func BenchmarkAllowTogether(b *testing.B) {
	f := newFake(1 << 50)
	c := client.New(f, client.Options{Prefetch: true})
	bucket := c.Bucket("api", account)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if d, err := bucket.Allow(context.Background(), 1); err != nil || !d.Allowed {
				b.Error(d, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	closed(b, c)
}

// BenchmarkAllowDenied denies requests of an exhausted bucket from memory.
func BenchmarkAllowDenied(b *testing.B) {
	f := newFake(0)
	c := client.New(f, client.Options{Prefetch: true})
	bucket := c.Bucket("api", account)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if d, err := bucket.Allow(ctx, 1); err != nil || d.Allowed {
			b.Fatal(d, err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	closed(b, c)
}

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
