//go:build !race

package process

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// newIDsLimits has a limit for Envoys, and one for those who ask.
const newIDsLimits = `
version: 1
regions: {us: {weight: 1}}
limits:
  - {name: ids, domain: envoys, key: [id], algorithm: token_bucket, limit: 60000, window: 1m, burst: 1000, assign: {}}
  - {name: asked, domain: bench, key: [key], algorithm: fixed_window, limit: 1000000000, window: 720h}
`

const (
	newIDsWithin = 30 * time.Second
	newIDsAskers = 64
	newIDsEvery  = 64 * time.Millisecond // between the questions of each
)

// BenchmarkNewIDs has Envoys report new bucket ids all at once, as a fleet does whose node was
// started again, beside callers who ask a thousand times a second. It prints when all ids had
// assignments, and how many of the others were refused. make overload runs it once: its figures are
// valid for this machine only.
func BenchmarkNewIDs(b *testing.B) {
	quotad, err := Build(b.Context(), b.TempDir())
	suite.Must(b, err)
	for _, c := range []struct{ envoys, ids int }{{0, 0}, {100, 200}, {20, 1000}} {
		f, err := Start(b.Context(), b, Config{Quotad: quotad, Limits: newIDsLimits, Regions: []RegionConfig{{Name: "us"}}})
		suite.Must(b, err)
		n := f.Region("us").Nodes[0]
		fleet := &newFleet{ids: c.ids}
		for _, conn := range []**grpc.ClientConn{&fleet.envoys, &fleet.callers} {
			*conn, err = grpc.NewClient(n.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
			suite.Must(b, err)
		}
		fleet.ask(b.Context(), b, time.Second) // the first call of each takes longer
		fleet.asked.Store(0)
		fleet.refused.Store(0)
		ctx, end := context.WithTimeout(b.Context(), newIDsWithin)
		begun := time.Now()
		var reporting, asking sync.WaitGroup
		for i := range c.envoys {
			reporting.Go(func() { fleet.report(ctx, b, i) })
		}
		if c.envoys == 0 {
			reporting.Go(func() { pause(b, 5*time.Second) })
		}
		asking.Go(func() { fleet.ask(ctx, b, newIDsWithin) })
		reporting.Wait()
		took := time.Since(begun)
		end()
		asking.Wait()
		asked := fleet.asked.Load()
		fmt.Printf("%d Envoys report %d new ids each: %d of %d have assignments after %.1f s; of %d others %.2f %% were refused\n",
			c.envoys, c.ids, fleet.assigned.Load(), c.envoys*c.ids, took.Seconds(), asked, 100*float64(fleet.refused.Load())/float64(asked))
		suite.Must(b, fleet.envoys.Close())
		suite.Must(b, fleet.callers.Close())
	}
}

// newFleet is Envoys that begin, and callers beside them.
type newFleet struct {
	envoys, callers          *grpc.ClientConn // apart: a connection has as many streams as it may
	ids                      int
	asked, refused, assigned atomic.Int64
}

// report plays an Envoy, which reports each of its ids again every five seconds, until all have
// assignments.
func (f *newFleet) report(ctx context.Context, b *testing.B, envoy int) {
	stream, err := quota.NewRateLimitQuotaServiceClient(f.envoys).StreamRateLimitQuotas(ctx)
	if err != nil {
		b.Error(err)
		return
	}
	reports := &quota.RateLimitQuotaUsageReports{Domain: "envoys"}
	for i := range f.ids {
		reports.BucketQuotaUsages = append(reports.BucketQuotaUsages, &quota.RateLimitQuotaUsageReports_BucketQuotaUsage{
			BucketId:    &quota.BucketId{Bucket: map[string]string{"id": fmt.Sprint(envoy, "-", i)}},
			TimeElapsed: durationpb.New(5 * time.Second), NumRequestsAllowed: 1})
	}
	ended := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for again := time.NewTicker(5 * time.Second); ; {
			if stream.Send(reports) != nil {
				return
			}
			select {
			case <-again.C:
			case <-ended:
				return
			}
		}
	})
	defer sending.Wait()
	defer close(ended)
	has := map[string]bool{}
	for len(has) < f.ids {
		answer, err := stream.Recv()
		if err != nil {
			return
		}
		for _, one := range answer.GetBucketAction() {
			if id := one.GetBucketId().GetBucket()["id"]; one.GetQuotaAssignmentAction() != nil && !has[id] {
				has[id] = true
				f.assigned.Add(1)
			}
		}
	}
}

// ask asks at an even pace for a time, or until ctx ends.
func (f *newFleet) ask(ctx context.Context, b *testing.B, lasts time.Duration) {
	ctx, end := context.WithTimeout(ctx, lasts)
	defer end()
	client := quotadv1.NewQuotaServiceClient(f.callers)
	var asking sync.WaitGroup
	for i := range newIDsAskers {
		asking.Go(func() {
			every := time.NewTicker(newIDsEvery)
			defer every.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-every.C:
				}
				f.asked.Add(1)
				call, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				_, err := client.Check(call, &quotadv1.CheckRequest{Domain: "bench",
					Descriptors: map[string]string{"key": fmt.Sprint(i)}})
				done()
				switch status.Code(err) {
				case codes.OK:
				case codes.ResourceExhausted, codes.DeadlineExceeded, codes.Unavailable:
					f.refused.Add(1)
				default:
					b.Error(err)
				}
			}
		})
	}
	asking.Wait()
}
