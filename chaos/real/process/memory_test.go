//go:build !race

package process

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const attackLasts = 15 * time.Second

// BenchmarkAttackMemory has one address take as much of a node's memory as it can: by calls of
// Watch, by bucket ids of Envoys that are as long as they may be, and by as many new ones as there
// may be. It prints what the node took above what it took at rest. make attacks runs it once: its
// figures are valid for this machine only. It fails if an attack takes a third more than 64 MB besides
// twice what the node's bounds let it keep, which the collector allows for.
func BenchmarkAttackMemory(b *testing.B) {
	quotad, err := Build(b.Context(), b.TempDir())
	suite.Must(b, err)
	fmt.Printf("%-32s %12s %12s %9s %9s %9s %9s\n", "attack", "taken", "refused", "at rest", "at most", "kept", "besides")
	for _, a := range []struct {
		name  string
		conns int
		does  func(context.Context, *grpc.ClientConn, int, *attacked)
	}{
		{"1,200 watches of 64 connections", 64, watches},
		{"1,000 long ids of 200 Envoys", 200, longIDs},
		{"1,000 short ids of 20 Envoys", 20, shortIDs},
	} {
		f, err := Start(b.Context(), b, Config{Quotad: quotad, Limits: newIDsLimits, Regions: []RegionConfig{{Name: "us"}}})
		suite.Must(b, err)
		n := f.Region("us").Nodes[0]
		rest, seen, before := memoryOf(&n.Process, "VmRSS"), &attacked{}, keptBy(b, n)
		ctx, end := context.WithTimeout(b.Context(), attackLasts+time.Minute)
		var attacking sync.WaitGroup
		for i := range a.conns {
			conn, err := grpc.NewClient(n.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
			suite.Must(b, err)
			attacking.Go(func() {
				defer conn.Close()
				a.does(ctx, conn, i, seen)
			})
		}
		pause(b, attackLasts)
		kept, most := keptBy(b, n)-before, memoryOf(&n.Process, "VmHWM")
		end()
		attacking.Wait()
		besides := most - rest - 2*kept
		fmt.Printf("%-32s %12d %12d %6d MB %6d MB %6d MB %6d MB\n", a.name, seen.taken.Load(), seen.refused.Load(), rest>>20,
			most>>20, kept>>20, besides>>20)
		if besides > 64<<20*4/3 {
			b.Errorf("%s: %d MB besides twice what is kept", a.name, besides>>20)
		}
	}
}

// keptBy has a node collect its garbage, and returns the bytes that it keeps.
func keptBy(b *testing.B, n *Node) (bytes int64) {
	r, err := http.Get("http://" + n.Admin + "/debug/pprof/heap?gc=1&debug=1")
	suite.Must(b, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	suite.Must(b, err)
	for _, what := range []string{"HeapAlloc", "Stack"} {
		_, rest, found := strings.Cut(string(text), "\n# "+what+" = ")
		var n int64
		if _, err := fmt.Sscan(rest, &n); err != nil || !found {
			b.Fatalf("the node's heap does not say %s: %v", what, err)
		}
		bytes += n
	}
	return bytes
}

// attacked counts what a node took, and what it refused.
type attacked struct{ taken, refused atomic.Int64 }

// watches opens calls of health's Watch until ctx ends.
func watches(ctx context.Context, conn *grpc.ClientConn, _ int, seen *attacked) {
	for range 1200 {
		s, err := grpc_health_v1.NewHealthClient(conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
		if err == nil {
			_, err = s.Recv()
		}
		if err != nil {
			seen.refused.Add(1)
		} else {
			seen.taken.Add(1)
		}
	}
	<-ctx.Done()
}

func longIDs(ctx context.Context, conn *grpc.ClientConn, envoy int, seen *attacked) {
	reportIDs(ctx, conn, envoy, 5, seen)
}

func shortIDs(ctx context.Context, conn *grpc.ClientConn, envoy int, seen *attacked) {
	reportIDs(ctx, conn, envoy, 0, seen)
}

// reportIDs reports a thousand bucket ids, each with so many more long descriptors, and reads what is
// answered until ctx ends.
func reportIDs(ctx context.Context, conn *grpc.ClientConn, envoy, more int, seen *attacked) {
	stream, err := quota.NewRateLimitQuotaServiceClient(conn).StreamRateLimitQuotas(ctx)
	for message := 0; err == nil && message < 10; message++ {
		reports := &quota.RateLimitQuotaUsageReports{Domain: "envoys"}
		for i := range 100 {
			id := map[string]string{"id": fmt.Sprint(envoy, "-", message, "-", i)}
			for n := range more {
				id[fmt.Sprint("more", n)] = strings.Repeat("x", 180)
			}
			reports.BucketQuotaUsages = append(reports.BucketQuotaUsages, &quota.RateLimitQuotaUsageReports_BucketQuotaUsage{
				BucketId: &quota.BucketId{Bucket: id}, TimeElapsed: durationpb.New(time.Second), NumRequestsAllowed: 1})
		}
		err = stream.Send(reports)
	}
	for err == nil {
		var answer *quota.RateLimitQuotaResponse
		answer, err = stream.Recv()
		for _, one := range answer.GetBucketAction() {
			if one.GetAbandonAction() != nil {
				seen.refused.Add(1)
			} else {
				seen.taken.Add(1)
			}
		}
	}
}
