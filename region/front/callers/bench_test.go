package callers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// BenchmarkCheckGRPC measures a decision over gRPC in memory, then only the handler of that call,
// and then the time that a real redis-server takes for the same script with the same arguments on
// one key. All report percentiles of single calls. The handler's time less evalsha is what a node
// adds to its Redis.
func BenchmarkCheckGRPC(b *testing.B) {
	server := fixtures.Process(b)
	node := fronts.Start(b, server, fronts.AccountLimit(1<<28, time.Hour))
	front := newServer(b, node, fronts.Quiet())
	client := quotadv1.NewQuotaServiceClient(dialed(b, front))
	handler := &service{Server: front}
	m := &quotadv1.CheckRequest{Domain: "api", Descriptors: map[string]string{"account": "42"}}
	allowed := func(got *quotadv1.CheckResponse, err error) error {
		if err == nil && !got.Decision.Allowed {
			err = fmt.Errorf("denied: %v", got.Decision)
		}
		return err
	}
	check := func(ctx context.Context) error { return allowed(client.Check(ctx, m)) }
	handle := func(ctx context.Context) error { return allowed(handler.Check(ctx, m)) }
	for _, callers := range []int{1, 4} {
		b.Run(fmt.Sprintf("check/callers=%d", callers),
			func(b *testing.B) { percentiles(b, callers, check) })
		b.Run(fmt.Sprintf("handler/callers=%d", callers),
			func(b *testing.B) { percentiles(b, callers, handle) })
		b.Run(fmt.Sprintf("evalsha/callers=%d", callers),
			func(b *testing.B) { percentiles(b, callers, bareScript(b, node, fixtures.Operator(b, server))) })
	}
}

// bareScript returns a call of the decide script on the bucket to which the checks are charged.
func bareScript(b *testing.B, node *fronts.Real, client *redis.Client) func(context.Context) error {
	b.Helper()
	limit := &node.Policy.Limits[0]
	bucket := store.BucketKey(store.Whole, string(limit.Bucket(map[string]string{"account": "42"})))
	guard := algorithms.Fence{Generation: node.Store.Generation(),
		Epoch: node.Policy.Epoch().String()}
	terms := algorithms.Terms{Kind: limit.Algorithm, Window: limit.Window.Microseconds(),
		Cell:        limit.Cell().Microseconds(),
		Tick:        algorithms.Tick(limit.Algorithm, limit.Limit, limit.Window.Microseconds()),
		Entitlement: limit.Limit}
	var call algorithms.Items
	call.Add(algorithms.Decide{Fence: guard, Commit: true, Costs: []quantity.Units{1},
		Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: bucket, Terms: terms}}}})
	suite.Must(b, client.ScriptLoad(b.Context(), algorithms.DecideScript.Source).Err())
	keys := []string{store.TokenKey(store.Whole), bucket}
	return func(ctx context.Context) error {
		c := call
		c.Clock = quantity.StoreTime(time.Now().UnixMicro())
		reply, err := client.EvalSha(ctx, algorithms.DecideScript.SHA, keys, c.Args()...).Result()
		if err != nil {
			return err
		}
		decided, err := c.Parse(reply)
		if err == nil && (decided.Status != algorithms.StatusOK ||
			!decided.Each[0].Answers[0].Admitted) {
			err = fmt.Errorf("answered %+v", decided)
		}
		return err
	}
}

// percentiles makes b.N calls by the given number of callers, and reports the median and the 99th
// percentile of the time of a call.
func percentiles(b *testing.B, callers int, call func(context.Context) error) {
	// Connections are made before the time is measured.
	for range callers {
		suite.Must(b, call(b.Context()))
	}
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var done sync.WaitGroup
	b.ResetTimer()
	for range callers {
		done.Go(func() {
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				start := time.Now()
				if err := call(b.Context()); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(start)
			}
		})
	}
	done.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}
