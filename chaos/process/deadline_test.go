//go:build !race

package process

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	descriptors "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/load"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// compared is the program of envoyproxy/ratelimit. make overload builds it.
var compared = flag.String("ratelimit", "", "program of envoyproxy/ratelimit to compare with")

// deadlineLimits has a limit that no load reaches, in a window whose edge no load meets.
const deadlineLimits = `
version: 1
regions:
  us: {weight: 1}
limits:
  - {name: bench, domain: bench, key: [key], algorithm: fixed_window, limit: 1000000000, window: 720h}
`

// sameLimit is the same for envoyproxy/ratelimit.
const sameLimit = `
domain: bench
descriptors:
  - {key: key, rate_limit: {unit: month, requests_per_unit: 1000000000}}
`

const (
	deadlineStep   = 3 * time.Second // how long each load is offered
	deadlineRounds = 3
	deadlineKeys   = 10_000
	deadlineConns  = 8
)

// offered is a load of single checks by Envoy's protocol.
type offered struct {
	callers  int           // that wait for their answers, or may wait at once
	deadline time.Duration // of each
	twice    bool          // at an even pace: twice what 64 callers got decided
}

// String names the load.
func (o offered) String() string {
	if o.twice {
		return fmt.Sprintf("twice that, %v", o.deadline)
	}
	return fmt.Sprintf("%d callers, %v", o.callers, o.deadline)
}

// loads are offered to each server. The first is what the others are measured by.
var loads = []offered{
	{64, time.Second, false},
	{256, 20 * time.Millisecond, false}, {256, 50 * time.Millisecond, false},
	{256, time.Second, false},
	{2000, 20 * time.Millisecond, false}, {2000, 50 * time.Millisecond, false},
	{2000, time.Second, false},
	{2000, 20 * time.Millisecond, true}, {2000, 50 * time.Millisecond, true},
	{2000, time.Second, true},
}

// BenchmarkDeadlines offers single checks to a node with default settings, to a server that decides
// nothing, and to envoyproxy/ratelimit if it is given, by turns. It prints how many were answered
// within their deadlines, and what became of the others. make overload runs it once: its figures
// are valid for this machine only.
func BenchmarkDeadlines(b *testing.B) {
	quotad, err := Build(b.Context(), b.TempDir())
	must(b, err)
	halves := cores(b)
	use(b, halves.served) // child processes inherit it
	f, err := Start(b.Context(), b, Config{Quotad: quotad, Limits: deadlineLimits,
		Regions: []RegionConfig{{Name: "us"}}})
	must(b, err)
	us := f.Region("us")
	all := []*rival{newRival("quotad", us.Nodes[0].GRPC, us.Redis), emptyServer(b, quotad)}
	if *compared != "" {
		all = append(all, comparedServer(b))
	}
	use(b, halves.loading)
	bodies := encodedChecks(b)
	for range deadlineRounds {
		for _, s := range all {
			for i, l := range loads {
				s.seen[i] = append(s.seen[i], s.offer(b, l, bodies))
			}
		}
	}
	fmt.Printf("%-16s %-20s %9s %9s %8s %9s %9s %9s %12s\n", "server", "load", "asked/s", "in time/s",
		"of first", "denied/s", "refused/s", "late/s", "for nobody")
	for i, l := range loads {
		for _, s := range all {
			s.tell(i, l)
		}
	}
}

// rival is one of those that are compared.
type rival struct {
	name    string
	address string
	redis   *Redis // nil: it decides nothing
	seen    [][]outcome
}

func newRival(name, address string, redis *Redis) *rival {
	return &rival{name: name, address: address, redis: redis, seen: make([][]outcome, len(loads))}
}

// outcome is what became of the requests of a load.
type outcome struct {
	asked, inTime, denied, refused, late float64 // a second
	charged                              float64 // of the units charged, for nobody
}

// emptyServer starts a server that gives the same answer to every request.
func emptyServer(b *testing.B, quotad string) *rival {
	answer, err := proto.Marshal(&quotadv1.CheckResponse{Decision: &quotadv1.Decision{Allowed: true}})
	must(b, err)
	path := filepath.Join(b.TempDir(), "answer")
	must(b, os.WriteFile(path, answer, 0o600))
	p, err := StartProgram(b.Context(), b, "floor", quotad, "bench", "floor", "--answer", path)
	must(b, err)
	return newRival("empty", p.Address, nil)
}

// comparedServer starts envoyproxy/ratelimit with a Redis of its own.
func comparedServer(b *testing.B) *rival {
	redis, err := StartRedis(b.Context(), b, RedisConfig{})
	must(b, err)
	dir := b.TempDir()
	must(b, os.Mkdir(filepath.Join(dir, "config"), 0o700))
	must(b, os.WriteFile(filepath.Join(dir, "config", "bench.yaml"), []byte(sameLimit), 0o600))
	var ports [3]string
	for i := range ports {
		address, err := freeAddress()
		must(b, err)
		_, ports[i], _ = net.SplitHostPort(address)
	}
	p := &Process{name: "ratelimit", dir: dir}
	b.Cleanup(p.Kill)
	p.SetEnv("HOST=127.0.0.1", "PORT="+ports[0], "GRPC_HOST=127.0.0.1", "GRPC_PORT="+ports[1],
		"DEBUG_HOST=127.0.0.1", "DEBUG_PORT="+ports[2], "USE_STATSD=false", "REDIS_SOCKET_TYPE=tcp",
		"REDIS_URL="+redis.Address, "RUNTIME_ROOT="+filepath.Dir(dir),
		"RUNTIME_SUBDIRECTORY="+filepath.Base(dir), "RUNTIME_WATCH_ROOT=false")
	must(b, p.start(*compared))
	return newRival("ratelimit", "127.0.0.1:"+ports[1], redis)
}

// encodedChecks returns encoded requests, one for each key.
func encodedChecks(b *testing.B) (all []ready) {
	for key := range deadlineKeys {
		body, err := proto.Marshal(&ratelimit.RateLimitRequest{Domain: "bench",
			Descriptors: []*descriptors.RateLimitDescriptor{{
				Entries: []*descriptors.RateLimitDescriptor_Entry{
					{Key: "key", Value: strconv.Itoa(key)}}}}})
		must(b, err)
		all = append(all, body)
	}
	return all
}

// offer offers a load, and returns what became of it.
func (s *rival) offer(b *testing.B, l offered, bodies []ready) outcome {
	conns := make([]*grpc.ClientConn, deadlineConns)
	for i := range conns {
		conns[i] = dial(b, s.address)
		defer conns[i].Close()
		must(b, conns[i].Invoke(b.Context(),
			ratelimit.RateLimitService_ShouldRateLimit_FullMethodName, bodies[i], &outcomeCode{},
			grpc.ForceCodec(outcomes{}), grpc.WaitForReady(true)))
	}
	before := s.charged(b)
	c := &counts{}
	var number atomic.Uint64
	ask := func() {
		i := number.Add(1)
		// All keys by turns, in an order that no server can profit from.
		c.ask(b.Context(), conns[i%deadlineConns], bodies[i*7919%deadlineKeys], l.deadline)
	}
	ctx, cancel := context.WithTimeout(b.Context(), deadlineStep)
	defer cancel()
	begun := time.Now()
	if l.twice {
		s.evenly(b, ctx, l, ask)
	} else {
		var all sync.WaitGroup
		for range l.callers {
			all.Go(func() {
				for ctx.Err() == nil {
					ask()
				}
			})
		}
		all.Wait()
	}
	o, charged := c.outcome(time.Since(begun)), s.charged(b)-before
	if charged > 0 {
		o.charged = float64(charged-c.ok.Load()) / float64(charged)
	}
	return o
}

// evenly asks at twice the pace at which 64 callers were answered.
func (s *rival) evenly(b *testing.B, ctx context.Context, l offered, ask func()) {
	g, err := load.NewGenerator(load.Config{Region: "us", MaxInFlight: l.callers,
		Rate: load.PerSecond(int64(2 * s.median(0, func(o outcome) float64 { return o.inTime }))),
		Do:   func(context.Context, load.Request) { ask() }})
	must(b, err)
	must(b, g.Run(ctx))
}

// charged returns how many units are charged in its Redis, once nothing more is.
func (s *rival) charged(b *testing.B) int64 {
	if s.redis == nil {
		return 0
	}
	for before := s.read(b); ; {
		pause(b, 200*time.Millisecond)
		now := s.read(b)
		if now == before {
			return now
		}
		before = now
	}
}

// read returns how many units are charged in its Redis now.
func (s *rival) read(b *testing.B) (units int64) {
	keys, err := s.redis.Client.Keys(b.Context(), "*").Result()
	must(b, err)
	for part := range slices.Chunk(keys, 1000) {
		pipe := s.redis.Client.Pipeline()
		for _, key := range part {
			if strings.Contains(key, ":b:") {
				pipe.HGet(b.Context(), key, "u")
			} else if strings.HasPrefix(key, "bench_") {
				pipe.Get(b.Context(), key)
			}
		}
		replies, err := pipe.Exec(b.Context())
		must(b, err)
		for _, r := range replies {
			n, err := strconv.ParseInt(r.(interface{ Val() string }).Val(), 10, 64)
			must(b, err)
			units += n
		}
	}
	return units
}

// counts counts outcomes. Safe for concurrent use.
type counts struct{ asked, ok, denied, refused, late atomic.Int64 }

// outcomeCode is the overall code of a RateLimitResponse, whose other fields are not decoded.
type outcomeCode struct {
	code ratelimit.RateLimitResponse_Code
}

// outcomes is the codec of checks: what is sent is encoded already.
type outcomes struct{ ready }

// Unmarshal implements encoding.Codec. The code is the first field.
func (outcomes) Unmarshal(data []byte, v any) error {
	if len(data) < 2 || data[0] != 1<<3 {
		return errors.New("no overall code")
	}
	v.(*outcomeCode).code = ratelimit.RateLimitResponse_Code(data[1])
	return nil
}

func (c *counts) ask(ctx context.Context, conn *grpc.ClientConn, body ready, deadline time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	var got outcomeCode
	err := conn.Invoke(ctx, ratelimit.RateLimitService_ShouldRateLimit_FullMethodName, body, &got,
		grpc.ForceCodec(outcomes{}))
	c.asked.Add(1)
	switch {
	case status.Code(err) == codes.DeadlineExceeded:
		c.late.Add(1)
	case err != nil:
		c.refused.Add(1)
	case got.code == ratelimit.RateLimitResponse_OK:
		c.ok.Add(1)
	default:
		c.denied.Add(1)
	}
}

func (c *counts) outcome(lasted time.Duration) outcome {
	each := func(n *atomic.Int64) float64 { return float64(n.Load()) / lasted.Seconds() }
	return outcome{asked: each(&c.asked), inTime: each(&c.ok), denied: each(&c.denied),
		refused: each(&c.refused), late: each(&c.late)}
}

// median returns the middle of a figure of the rounds of a load.
func (s *rival) median(load int, figure func(outcome) float64) float64 {
	var all []float64
	for _, o := range s.seen[load] {
		all = append(all, figure(o))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// tell prints the medians of a load.
func (s *rival) tell(i int, l offered) {
	inTime := func(o outcome) float64 { return o.inTime }
	nobody := "-"
	if s.redis != nil {
		nobody = fmt.Sprintf("%.1f %%", 100*s.median(i, func(o outcome) float64 { return o.charged }))
	}
	fmt.Printf("%-16s %-20v %9.0f %9.0f %8.2f %9.0f %9.0f %9.0f %12s\n", s.name, l,
		s.median(i, func(o outcome) float64 { return o.asked }), s.median(i, inTime),
		s.median(i, inTime)/s.median(0, inTime),
		s.median(i, func(o outcome) float64 { return o.denied }),
		s.median(i, func(o outcome) float64 { return o.refused }),
		s.median(i, func(o outcome) float64 { return o.late }), nobody)
}
