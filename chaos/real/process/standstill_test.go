//go:build !race

package process

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// BenchmarkStandstill has eight callers send batches for ten seconds to a node whose Redis stands
// still for 40 of every 45 ms, and prints after how long a batch is decided again. Then it ends the
// Redis, and prints how long batches of new keys take. make overload runs it once.
func BenchmarkStandstill(b *testing.B) {
	quotad, err := Build(b.Context(), b.TempDir())
	suite.Must(b, err)
	f, err := Start(b.Context(), b, Config{Quotad: quotad, Limits: deadlineLimits,
		Regions: []RegionConfig{{Name: "us"}}})
	suite.Must(b, err)
	us := f.Region("us")
	client := quotadv1.NewQuotaServiceClient(dial(b, us.Nodes[0].GRPC))
	keys := 0
	var mu sync.Mutex
	ask := func(ctx context.Context) (undecided int, err error) {
		m := &quotadv1.CheckBatchRequest{}
		mu.Lock()
		for range inBatch {
			keys++
			m.Requests = append(m.Requests, &quotadv1.CheckRequest{Domain: "bench",
				Descriptors: map[string]string{"key": strconv.Itoa(keys)}})
		}
		mu.Unlock()
		got, err := client.CheckBatch(ctx, m)
		for _, d := range got.GetDecisions() {
			if d.Undecided {
				undecided++
			}
		}
		return undecided, err
	}
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = ask(b.Context())
			}
		})
	}
	for ctx.Err() == nil {
		suite.Must(b, us.Redis.Pause())
		time.Sleep(40 * time.Millisecond)
		suite.Must(b, us.Redis.Resume())
		time.Sleep(5 * time.Millisecond)
	}
	begun := time.Now()
	all.Wait()
	asked := 0
	for {
		asked++
		if undecided, err := ask(b.Context()); err == nil && undecided == 0 {
			break
		}
		if time.Since(begun) > time.Minute {
			b.Fatal("no batch is decided again")
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("a batch is decided again %v after the Redis stood still for the last time, at try %d\n",
		time.Since(begun).Round(time.Millisecond), asked)
	us.Redis.Kill()
	var took []time.Duration
	for range 50 {
		sent := time.Now()
		_, err := ask(b.Context())
		suite.Must(b, err)
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	fmt.Printf("without a Redis a batch of %d new keys takes %v, at most %v\n", inBatch,
		took[len(took)/2].Round(10*time.Microsecond), took[len(took)-1].Round(10*time.Microsecond))
}
