//go:build !race

package process

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	descriptors "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/suite"
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
	deadlineBase   = 2 * time.Second // and 64 callers before each, which it is measured by
	deadlineRounds = 3
	deadlineKeys   = 10_000
	deadlineConns  = 8
)

// offered is a load of checks: single ones by Envoy's protocol, or batches by quotad's.
type offered struct {
	batches  bool
	callers  int           // that wait for their answers, or may wait at once
	deadline time.Duration // of each
	twice    bool          // at an even pace: twice what 64 callers got decided
}

// String names the load.
func (o offered) String() string {
	what := map[bool]string{true: "batches "}[o.batches]
	if o.twice {
		return fmt.Sprintf("%stwice that, %v", what, o.deadline)
	}
	return fmt.Sprintf("%s%d callers, %v", what, o.callers, o.deadline)
}

// loads returns what is offered to each server: of single checks, then of batches.
func loads() (all []offered) {
	for _, batches := range []bool{false, true} {
		for _, l := range []offered{{callers: 256}, {callers: 2000}, {callers: 2000, twice: true}} {
			for _, l.deadline = range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond,
				time.Second} {
				l.batches = batches
				all = append(all, l)
			}
		}
	}
	return all
}

// BenchmarkDeadlines offers checks to a node with default settings, to a server that decides
// nothing, and to envoyproxy/ratelimit if it is given, by turns. It prints how many were answered
// within their deadlines, and what became of the others. make overload runs it once: its figures
// are valid for this machine only.
func BenchmarkDeadlines(b *testing.B) {
	quotad, err := Build(b.Context(), b.TempDir())
	suite.Must(b, err)
	halves := cores(b)
	use(b, halves.served) // child processes inherit it
	f, err := Start(b.Context(), b, Config{Quotad: quotad, Limits: deadlineLimits,
		Regions: []RegionConfig{{Name: "us"}}})
	suite.Must(b, err)
	us := f.Region("us")
	node := &rival{name: "quotad", single: us.Nodes[0].GRPC, batches: us.Nodes[0].GRPC, redis: us.Redis}
	all := []*rival{node, emptyServer(b, quotad, node)}
	if *compared != "" {
		all = append(all, comparedServer(b))
	}
	use(b, halves.loading)
	for range deadlineRounds {
		for _, l := range loads() {
			for _, s := range all {
				s.measure(b, l)
			}
		}
	}
	fmt.Printf("%-10s %-22s %11s %9s %9s %7s %9s %9s %9s %10s\n", "server", "load", "64 before/s", "asked/s",
		"in time/s", "of 64", "denied/s", "refused/s", "late/s", "for nobody")
	for _, l := range loads() {
		for _, s := range all {
			s.tell(l)
		}
	}
}

// rival is one of those that are compared.
type rival struct {
	name    string
	single  string // its address for single checks
	batches string // and for batches; empty: it has none
	redis   *Redis // nil: it decides nothing
	by      *rival // whose 64 callers it is measured by; nil: its own
	seen    map[offered][]outcome
}

// outcome is what became of the requests of a load.
type outcome struct {
	asked, inTime, denied, refused, late float64 // a second
	first                                float64 // in time a second, of 64 callers just before
	charged                              float64 // of the units charged, for nobody
}

// emptyServer starts two servers that give the same answer to every call: to a check, to a batch.
func emptyServer(b *testing.B, quotad string, by *rival) *rival {
	decision := &quotadv1.Decision{Allowed: true}
	batch := &quotadv1.CheckBatchResponse{}
	for range inBatch {
		batch.Decisions = append(batch.Decisions, decision)
	}
	var addresses []string
	for _, m := range []proto.Message{&quotadv1.CheckResponse{Decision: decision}, batch} {
		answer, err := proto.Marshal(m)
		suite.Must(b, err)
		path := filepath.Join(b.TempDir(), "answer")
		suite.Must(b, os.WriteFile(path, answer, 0o600))
		p, err := StartProgram(b.Context(), b, "floor", quotad, "bench", "floor", "--answer", path)
		suite.Must(b, err)
		addresses = append(addresses, p.Address)
	}
	return &rival{name: "empty", single: addresses[0], batches: addresses[1], by: by}
}

// comparedServer starts envoyproxy/ratelimit with a Redis of its own.
func comparedServer(b *testing.B) *rival {
	r, err := StartRatelimit(b.Context(), b, *compared, map[string][]byte{"bench.yaml": []byte(sameLimit)})
	suite.Must(b, err)
	return &rival{name: "ratelimit", single: r.GRPC, redis: r.Redis}
}

// asks returns what the callers of one of the connections ask.
func (l offered) asks(b *testing.B, conn int) asking {
	a := asking{method: ratelimit.RateLimitService_ShouldRateLimit_FullMethodName, requests: 1,
		deadline: l.deadline, callers: l.callers / deadlineConns, judge: judgeSingle}
	if l.batches {
		a.method, a.requests = quotadv1.QuotaService_CheckBatch_FullMethodName, inBatch
		a.judge = judgeBatch
	}
	bodies := deadlineKeys / deadlineConns
	if l.batches {
		bodies = deadlineKeys / inBatch
	}
	for i := conn; len(a.bodies) < bodies; i += deadlineConns {
		var m proto.Message
		key := strconv.Itoa(i * 7919 % deadlineKeys) // in an order that no server can profit from
		if !l.batches {
			m = &ratelimit.RateLimitRequest{Domain: "bench",
				Descriptors: []*descriptors.RateLimitDescriptor{{
					Entries: []*descriptors.RateLimitDescriptor_Entry{{Key: "key", Value: key}}}}}
		} else {
			batch := &quotadv1.CheckBatchRequest{}
			for n := range inBatch {
				batch.Requests = append(batch.Requests, &quotadv1.CheckRequest{Domain: "bench",
					Descriptors: map[string]string{"key": strconv.Itoa((i + n*97) % deadlineKeys)}})
			}
			m = batch
		}
		body, err := proto.Marshal(m)
		suite.Must(b, err)
		a.bodies = append(a.bodies, body)
	}
	return a
}

// judgeSingle reads the overall code of a RateLimitResponse, its first field. Of the empty server's
// answer that field has the decision.
func judgeSingle(answer []byte) counts {
	const decision = 1<<3 | 2
	if len(answer) >= 2 && (answer[0] == decision ||
		answer[0] == 1<<3 && answer[1] == byte(ratelimit.RateLimitResponse_OK)) {
		return counts{ok: 1}
	}
	return counts{denied: 1}
}

func judgeBatch(answer []byte) (c counts) {
	var got quotadv1.CheckBatchResponse
	if err := proto.Unmarshal(answer, &got); err != nil {
		return counts{denied: inBatch} // told as what must not be
	}
	for _, d := range got.Decisions {
		switch {
		case d.Undecided:
			c.refused++
		case d.Allowed:
			c.ok++
		default:
			c.denied++
		}
	}
	return c
}

// measure offers a load, and what it is measured by just before it: how fast a machine is may change
// from one minute to the next.
func (s *rival) measure(b *testing.B, l offered) {
	if l.batches && s.batches == "" {
		return
	}
	by := cmp.Or(s.by, s)
	first := by.offer(b, base(l), deadlineBase, 0)
	o := s.offer(b, l, deadlineStep, 2*first.inTime)
	o.first = first.inTime
	if s.seen == nil {
		s.seen = map[offered][]outcome{}
	}
	s.seen[l] = append(s.seen[l], o)
}

// offer offers a load for some time, and returns what became of it. twice is how many requests a
// second are offered at an even pace.
func (s *rival) offer(b *testing.B, l offered, lasts time.Duration, twice float64) outcome {
	address := s.single
	if l.batches {
		address = s.batches
	}
	conns := make([]*framed, deadlineConns)
	for i := range conns {
		asks := l.asks(b, i)
		if l.twice {
			asks.every = time.Duration(deadlineConns * float64(asks.requests) / twice * float64(time.Second))
		}
		var err error
		conns[i], err = newFramed(address, asks)
		suite.Must(b, err)
	}
	before := s.charged(b)
	ctx, cancel := context.WithTimeout(b.Context(), lasts)
	defer cancel()
	errs := make([]error, len(conns))
	var all sync.WaitGroup
	for i, w := range conns {
		all.Go(func() { errs[i] = w.run(ctx) })
	}
	all.Wait()
	suite.Must(b, errs...)
	var c, steady counts
	for _, w := range conns {
		c.add(w.seen)
		steady.add(w.steady)
	}
	o, charged := steady.outcome(lasts-framedWarmUp), s.charged(b)-before
	if charged > 0 {
		o.charged = float64(charged-c.ok) / float64(charged)
	}
	return o
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
	suite.Must(b, err)
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
		suite.Must(b, err)
		for _, r := range replies {
			n, err := strconv.ParseInt(r.(interface{ Val() string }).Val(), 10, 64)
			suite.Must(b, err)
			units += n
		}
	}
	return units
}

// outcome returns the counts of a second.
func (c counts) outcome(lasted time.Duration) outcome {
	each := func(n int64) float64 { return float64(n) / lasted.Seconds() }
	return outcome{asked: each(c.asked), inTime: each(c.ok), denied: each(c.denied),
		refused: each(c.refused), late: each(c.late)}
}

// base returns what a load is measured by.
func base(l offered) offered {
	return offered{l.batches, 64, time.Second, false}
}

// median returns the middle of a figure of the rounds of a load.
func (s *rival) median(l offered, figure func(outcome) float64) float64 {
	var all []float64
	for _, o := range s.seen[l] {
		all = append(all, figure(o))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// tell prints the medians of a load.
func (s *rival) tell(l offered) {
	if len(s.seen[l]) == 0 {
		return
	}
	nobody := "-"
	if s.redis != nil {
		nobody = fmt.Sprintf("%.1f %%", 100*s.median(l, func(o outcome) float64 { return o.charged }))
	}
	middle := func(figure func(outcome) float64) float64 { return s.median(l, figure) }
	fmt.Printf("%-10s %-22v %11.0f %9.0f %9.0f %7.2f %9.0f %9.0f %9.0f %10s\n", s.name, l,
		middle(func(o outcome) float64 { return o.first }), middle(func(o outcome) float64 { return o.asked }),
		middle(func(o outcome) float64 { return o.inTime }),
		middle(func(o outcome) float64 { return o.inTime / o.first }),
		middle(func(o outcome) float64 { return o.denied }),
		middle(func(o outcome) float64 { return o.refused }),
		middle(func(o outcome) float64 { return o.late }), nobody)
}
