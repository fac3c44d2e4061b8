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
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
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
// each reported every 5 s, and memory for each pair of a stream and a bucket id. What the clients cost
// is measured at a server that passes over what they send, and is subtracted; they send bytes and
// decode nothing. %core-decode is what it takes to decode the reports with protobuf and do nothing with
// them. Redis' own time is apart.
func BenchmarkRLQS(b *testing.B) {
	for b.Loop() {
		none := func() assign.Stats { return assign.Stats{} }
		clients := reportTo(b, taking(b, func(wire) error { return nil }), none)
		decoding := reportTo(b, taking(b, func(m wire) error {
			return proto.Unmarshal(m, &rlqsv3.RateLimitQuotaUsageReports{})
		}), none)
		limit := fmt.Sprintf("  - {name: account, domain: api, key: [account], algorithm: token_bucket, limit: %d, window: 1s, assign: {ttl: 15s}}\n", 100*rlqsStreams)
		server := fixtures.Process(b)
		node := startNode(b, server, limit)
		before, stored := heap(), redisTime(b, node)
		served := reportTo(b, dialed(b, newServer(b, node, quiet())), node.Envoys().Stats)
		percent := func(d time.Duration) float64 { return 100 * d.Seconds() / rlqsFor.Seconds() }
		b.ReportMetric(percent(served.cpu-clients.cpu), "%core")
		b.ReportMetric(percent(decoding.cpu-clients.cpu), "%core-decode")
		b.ReportMetric(percent(redisTime(b, node)-stored), "%core-redis")
		b.ReportMetric(float64(served.heap-before)/(rlqsStreams*rlqsBuckets), "B/pair")
		b.ReportMetric(float64(served.assigned)/(rlqsStreams*rlqsBuckets), "assignments/pair")
		s := served.stats
		b.Logf("%+v; clients alone %v, with quotad %v", s, clients.cpu, served.cpu)
		if s.Shares != rlqsStreams*rlqsBuckets || served.assigned < rlqsStreams*rlqsBuckets {
			b.Errorf("%d pairs, %d assignments", s.Shares, served.assigned)
		}
	}
}

// wire is a message as its bytes.
type wire []byte

// wireCodec passes on bytes as they are.
type wireCodec struct{}

func (wireCodec) Name() string { return "proto" }

func (wireCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(wire))}, nil
}

func (wireCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*wire) = data.Materialize()
	return nil
}

// taking returns a connection to a server that takes messages and answers nothing.
func taking(b *testing.B, take func(wire) error) *grpc.ClientConn {
	b.Helper()
	l := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.ForceServerCodecV2(wireCodec{}),
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			for {
				var m wire
				if err := s.RecvMsg(&m); err != nil {
					return err
				}
				if err := take(m); err != nil {
					return err
				}
			}
		}))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	b.Cleanup(func() { server.Stop(); serving.Wait() })
	conn, err := grpc.NewClient("passthrough:///taking",
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
	service := &rlqsv3.RateLimitQuotaService_ServiceDesc
	var assigned atomic.Int64
	var begun, ended sync.WaitGroup
	begun.Add(rlqsStreams)
	for i := range rlqsStreams {
		ended.Go(func() {
			time.Sleep(rlqsEvery * time.Duration(i) / rlqsStreams)
			stream, err := conn.NewStream(ctx, &service.Streams[0],
				"/"+service.ServiceName+"/"+service.Streams[0].StreamName,
				grpc.ForceCodecV2(wireCodec{}))
			if err != nil {
				b.Error(err)
				begun.Done()
				return
			}
			ended.Go(func() {
				for {
					var m wire
					if stream.RecvMsg(&m) != nil {
						return
					}
					assigned.Add(actionsIn(m))
				}
			})
			first := true
			m, err := proto.Marshal(reportOf(i))
			if err != nil {
				b.Error(err)
			}
			for wait := time.Duration(0); ; wait = rlqsEvery {
				select {
				case <-ctx.Done():
					return
				case <-time.After(wait):
				}
				if stream.SendMsg(wire(m)) != nil && ctx.Err() == nil {
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

// actionsIn returns how many bucket actions a message has.
func actionsIn(m wire) (actions int64) {
	for len(m) > 0 {
		_, _, n := protowire.ConsumeField(m)
		if n < 0 {
			return actions
		}
		m = m[n:]
		actions++
	}
	return actions
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
