package api

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/allocator/assign"
	"github.com/quotad/quotad/chaos/lab/fixtures"
)

// The load of BenchmarkRLQS: streams that report so many bucket ids every five seconds, evenly spread.
const (
	rlqsStreams = 1000
	rlqsBuckets = 100
	rlqsEvery   = 5 * time.Second
	rlqsFor     = 30 * time.Second
)

// BenchmarkRLQS measures what Envoys cost a node: processor time for 1,000 streams of 100 bucket ids,
// each reported every 5 s, and memory for each pair of a stream and a bucket id. The same clients on a
// server that only reads their reports are subtracted. Redis' own time is apart.
func BenchmarkRLQS(b *testing.B) {
	for b.Loop() {
		idle := reportTo(b, readOnly(b), func() assign.Stats { return assign.Stats{} })
		limit := fmt.Sprintf("  - {name: account, domain: api, key: [account], algorithm: token_bucket, limit: %d, window: 1s, assign: {ttl: 15s}}\n", 100*rlqsStreams)
		server := fixtures.Process(b)
		node := startNode(b, server, limit)
		before, stored := heap(), redisTime(b, node)
		served := reportTo(b, dialed(b, newServer(b, node, quiet())), node.Envoys().Stats)
		b.ReportMetric(100*(served.cpu-idle.cpu).Seconds()/rlqsFor.Seconds(), "%core")
		b.ReportMetric(100*(redisTime(b, node)-stored).Seconds()/rlqsFor.Seconds(), "%core-redis")
		b.ReportMetric(float64(served.heap-before)/(rlqsStreams*rlqsBuckets), "B/pair")
		b.ReportMetric(float64(served.assigned)/(rlqsStreams*rlqsBuckets), "assignments/pair")
		s := served.stats
		b.Logf("%+v; clients alone %v, with quotad %v", s, idle.cpu, served.cpu)
		if s.Shares != rlqsStreams*rlqsBuckets || served.assigned < rlqsStreams*rlqsBuckets {
			b.Errorf("%d pairs, %d assignments", s.Shares, served.assigned)
		}
	}
}

// reader is a server that reads reports and answers nothing.
type reader struct {
	rlqsv3.UnimplementedRateLimitQuotaServiceServer
}

// StreamRateLimitQuotas reads until the stream is over.
func (reader) StreamRateLimitQuotas(s rlqsStream) error {
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
	}
}

// readOnly returns a connection to a reader.
func readOnly(b *testing.B) *grpc.ClientConn {
	b.Helper()
	l := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	rlqsv3.RegisterRateLimitQuotaServiceServer(server, reader{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	b.Cleanup(func() { server.Stop(); serving.Wait() })
	conn, err := grpc.NewClient("passthrough:///reader",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return l.DialContext(ctx)
		}), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

// redisTime returns the processor time that a node's Redis has used.
func redisTime(b *testing.B, node *realNode) time.Duration {
	b.Helper()
	options, err := redis.ParseURL(node.server.URL)
	if err != nil {
		b.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	text, err := client.Info(b.Context(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	var sum float64
	for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
		_, after, _ := strings.Cut(text, name)
		number, _, _ := strings.Cut(after, "\r\n")
		n, err := strconv.ParseFloat(number, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return time.Duration(sum * float64(time.Second))
}

// measured is what a load took and got.
type measured struct {
	cpu      time.Duration
	assigned int64
	stats    assign.Stats // at the end
	heap     int64        // likewise
}

// reportTo has all streams report for rlqsFor, after they have all begun.
func reportTo(b *testing.B, conn *grpc.ClientConn, stats func() assign.Stats) measured {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	client := rlqsv3.NewRateLimitQuotaServiceClient(conn)
	var assigned atomic.Int64
	var begun, ended sync.WaitGroup
	begun.Add(rlqsStreams)
	for i := range rlqsStreams {
		ended.Go(func() {
			time.Sleep(rlqsEvery * time.Duration(i) / rlqsStreams)
			stream, err := client.StreamRateLimitQuotas(ctx)
			if err != nil {
				b.Error(err)
				begun.Done()
				return
			}
			ended.Go(func() {
				for {
					m, err := stream.Recv()
					if err != nil {
						return
					}
					for _, a := range m.GetBucketAction() {
						if a.GetQuotaAssignmentAction() != nil {
							assigned.Add(1)
						}
					}
				}
			})
			first := true
			m := reportOf(i)
			for wait := time.Duration(0); ; wait = rlqsEvery {
				select {
				case <-ctx.Done():
					return
				case <-time.After(wait):
				}
				if stream.Send(m) != nil && ctx.Err() == nil {
					b.Error("a stream broke")
				}
				if first {
					begun.Done()
					first = false
				}
			}
		})
	}
	begun.Wait()
	time.Sleep(2 * rlqsEvery)
	r := measured{cpu: -processorTime(b)}
	time.Sleep(rlqsFor)
	r.cpu += processorTime(b)
	r.assigned, r.stats, r.heap = assigned.Load(), stats(), heap()
	cancel()
	ended.Wait()
	return r
}

// reportOf returns what a stream reports: a demand of its own for each bucket id.
func reportOf(stream int) *rlqsv3.RateLimitQuotaUsageReports {
	m := &rlqsv3.RateLimitQuotaUsageReports{Domain: "api"}
	for i := range rlqsBuckets {
		m.BucketQuotaUsages = append(m.BucketQuotaUsages,
			&rlqsv3.RateLimitQuotaUsageReports_BucketQuotaUsage{
				BucketId:    &rlqsv3.BucketId{Bucket: map[string]string{"account": fmt.Sprint(i)}},
				TimeElapsed: &durationpb.Duration{Seconds: 5},

				NumRequestsAllowed: uint64(5 * (20 + (stream+i)%100))})
	}
	return m
}

// processorTime returns the processor time that this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// heap returns the bytes that live on the heap.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
