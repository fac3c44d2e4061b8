package callers

import (
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"

	"github.com/quotad/quotad/allocator/assign"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/envoys"
)

// The load of BenchmarkRLQS: streams that report so many bucket ids every five seconds, evenly
// spread.
const (
	rlqsStreams = 1000
	rlqsBuckets = 100
	rlqsEvery   = 5 * time.Second
	rlqsPairs   = rlqsStreams * rlqsBuckets
	// rlqsSettles is how long the load runs before it is measured, and rlqsFor how long it is.
	rlqsSettles = 15 * time.Second
	rlqsFor     = 30 * time.Second
)

// BenchmarkRLQS measures what Envoys cost a node: processor time for 1,000 streams of 100 bucket
// ids, each reported every 5 s, and memory. The Envoys are a process of their own. Each has a
// connection of its own, or they all share one.
//
// The floor is a server without bounds that decodes the same reports with protobuf, and answers
// each with as many assignments that are always the same as the node sent for a report.
//
//	%core        processor time of the node, its Redis' included
//	%core-redis  of it that of Redis
//	%core-floor  processor time of the floor
//	floors       the first in times of the last
//	kB/stream    heap of a stream, and its connection, that has reported no bucket id
//	B/pair       heap of a pair of a stream and a bucket id, beyond that
func BenchmarkRLQS(b *testing.B) {
	for _, connections := range []int{rlqsStreams, 1} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			for b.Loop() {
				benchmarkRLQS(b, connections)
			}
		})
	}
}

func benchmarkRLQS(b *testing.B, connections int) {
	limit := fmt.Sprintf("  - {name: account, domain: api, key: [account], algorithm: token_bucket, "+
		"limit: %d, window: 1s, assign: {ttl: 15s}}\n", 100*rlqsStreams)
	store := fixtures.Process(b)
	node := fronts.Start(b, store, limit)
	operator := fixtures.Operator(b, store)
	server := newServer(b, node, fronts.Quiet())
	var stored time.Duration
	var stats assign.Stats
	served := reportTo(b, connections, server.ServeGRPC, func() {
		stored, stats = redisTime(b, operator)-stored, node.Envoys().Stats()
	})
	if stats.Shares != rlqsPairs || served.assigned < rlqsPairs {
		b.Errorf("%+v, %d assignments", stats, served.assigned)
	}
	if err := server.Close(); err != nil {
		b.Error(err)
	}
	each := int(served.assigned) * int(rlqsEvery) / (rlqsStreams * int(rlqsFor))
	least := grpc.NewServer()
	rlqsv3.RegisterRateLimitQuotaServiceServer(least, floor{each: each})
	floor := reportTo(b, connections, least.Serve, func() {})
	least.Stop()

	percent := func(d time.Duration) float64 { return 100 * d.Seconds() / rlqsFor.Seconds() }
	b.ReportMetric(percent(served.cpu+stored), "%core")
	b.ReportMetric(percent(stored), "%core-redis")
	b.ReportMetric(percent(floor.cpu), "%core-floor")
	b.ReportMetric((served.cpu+stored).Seconds()/floor.cpu.Seconds(), "floors")
	b.ReportMetric(float64(served.open)/rlqsStreams/1000, "kB/stream")
	b.ReportMetric(float64(served.reporting)/rlqsPairs, "B/pair")
	b.ReportMetric(float64(served.assigned)/rlqsFor.Seconds(), "assignments/s")
	b.ReportMetric(float64(served.messages)/rlqsFor.Seconds(), "messages/s")
	b.ReportMetric(0, "ns/op")
	b.Logf("%+v; garbage collections: %d, of the floor %d", stats, served.collections, floor.collections)
}

// floor answers every report with so many assignments.
type floor struct {
	rlqsv3.UnimplementedRateLimitQuotaServiceServer
	each int
}

// StreamRateLimitQuotas implements envoy.service.rate_limit_quota.v3.RateLimitQuotaService.
func (f floor) StreamRateLimitQuotas(stream rlqsStream) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		all := make([]envoys.Assignment, 0, f.each)
		for _, u := range m.GetBucketQuotaUsages()[:min(f.each, len(m.GetBucketQuotaUsages()))] {
			all = append(all, envoys.Assignment{ID: u.GetBucketId().GetBucket(), Rate: 100, Burst: 1,
				TTL: 15})
		}
		if len(all) == 0 {
			continue
		}
		if err := stream.Send(assignmentsMessage(all)); err != nil {
			return err
		}
	}
}

// measured is what a load took and got.
type measured struct {
	cpu                time.Duration
	collections        uint32 // of garbage
	assigned, messages int64
	// open is the heap that streams take which have not reported any bucket id, and reporting what
	// they take beyond that when they have.
	open, reporting int64
}

// reportTo has all streams report to a server, and measures this process. It calls read when it
// begins to measure and when it ends.
func reportTo(b *testing.B, connections int, serve func(net.Listener) error, read func()) measured {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(b, err)
	d := door.New("grpc", door.Limits{Connections: 2 * rlqsStreams, PerAddress: 2 * rlqsStreams})
	var serving sync.WaitGroup
	serving.Go(func() { _ = serve(d.Listener(l)) })
	defer serving.Wait()
	defer l.Close()
	before := heap()
	clients := startClients(b, l.Addr().String(), connections)
	defer clients.end()
	clients.ask("open")
	open := heap()
	clients.ask("report")
	time.Sleep(rlqsSettles)
	assigned, messages := clients.ask("count")
	read()
	collected := collections()
	cpu := processorTime(b)
	time.Sleep(rlqsFor)
	cpu = processorTime(b) - cpu
	collected = collections() - collected
	read()
	assignedThen, messagesThen := clients.ask("count")
	return measured{cpu: cpu, collections: collected, open: open - before, reporting: heap() - open,
		assigned: assignedThen - assigned, messages: messagesThen - messages}
}

// redisTime returns the processor time that a Redis has used.
func redisTime(b *testing.B, client *redis.Client) time.Duration {
	b.Helper()
	text, err := client.Info(b.Context(), "cpu").Result()
	suite.Must(b, err)
	var sum float64
	for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
		_, after, _ := strings.Cut(text, name)
		number, _, _ := strings.Cut(after, "\r\n")
		n, err := strconv.ParseFloat(number, 64)
		suite.Must(b, err)
		sum += n
	}
	return time.Duration(sum * float64(time.Second))
}

// processorTime returns the processor time that this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	suite.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// collections returns how often garbage was collected.
func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

// heap returns the bytes that live on the heap.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
