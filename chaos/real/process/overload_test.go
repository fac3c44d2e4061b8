//go:build !race

package process

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/load"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// overloadLimits has the limit that attackers flood, and those that victims use meanwhile.
const overloadLimits = `
version: 1
regions:
  us: {weight: 1}
limits:
  - {name: flood, domain: flood, key: [account], algorithm: fixed_window, limit: 1000000000, window: 1h}
  - {name: log, domain: log, key: [account], algorithm: sliding_window_log, limit: 500, window: 10s}
  - {name: victim, domain: api, key: [account], algorithm: fixed_window, limit: 1000000, window: 1h, on_store_failure: deny}
  - {name: tight, domain: tight, key: [account], algorithm: fixed_window, limit: 10, window: 1h, on_store_failure: allow}
`

const (
	overloadStep = 4 * time.Second // how long each load is offered
	inBatch      = 100
)

// BenchmarkOverload offers a real node with a real Redis up to ten times the load that it can
// decide, and prints what victims experience meanwhile. make overload runs it once: its figures are
// valid for this machine only.
func BenchmarkOverload(b *testing.B) {
	quotad, err := Build(b.Context(), b.TempDir())
	suite.Must(b, err)
	halves := cores(b)
	use(b, halves.served) // child processes inherit it
	f, err := Start(b.Context(), b, Config{Quotad: quotad, Limits: overloadLimits,
		Regions: []RegionConfig{{Name: "us"}}})
	use(b, halves.loading)
	suite.Must(b, err)
	r := f.Region("us")
	o := &overload{b: b, node: r.Nodes[0], redis: r.Redis}
	fmt.Printf("%-34s %9s %9s %9s %9s  %22s %8s %9s %8s %6s\n", "attack", "offered/s", "decided/s",
		"refused/s", "unread/s", "victims in 50 ms", "p99",
		"failures", "RSS +MB", "conns")
	best, most := 0.0, attack{}
	for _, callers := range []int{1, 2, 6, 8, 12} { // callers that wait for their answers
		a := attack{name: fmt.Sprintf("%d callers of CheckBatch(100)", callers), callers: callers}
		if decided := o.plays(a); decided > best {
			best, most = decided, a
		}
	}
	rest := o.plays(attack{name: "1x", rate: best})
	best = max(best, rest)
	for _, times := range []float64{2, 5, 10} {
		o.plays(attack{name: fmt.Sprintf("%.0fx", times), rate: times * best})
	}
	o.plays(attack{name: "10x, one key", rate: 10 * best, oneKey: true})
	o.plays(attack{name: "10x, the log", rate: 10 * best, domain: "log"})
	o.plays(attack{name: "10x, ten batches at a time", rate: 10 * best, together: 10})
	o.plays(attack{name: "10x, 1,000 connections", rate: 10 * best, conns: 1000})
	o.goodput(most, attack{name: "10x", rate: 10 * best})
}

// goodput alternates the attack of which most was decided with another one, so that both suffer
// equally when the machine is slow for a while. It prints the decisions of the other as a part of
// those of the first.
func (o *overload) goodput(most, of attack) {
	var best, decided []float64
	for range 7 {
		best = append(best, o.plays(most))
		decided = append(decided, o.plays(of))
	}
	slices.Sort(best)
	slices.Sort(decided)
	fmt.Printf("goodput at %s: %.0f of %.0f checks a second, medians of 7 by turns: %.1f %%\n",
		of.name, decided[3], best[3], 100*decided[3]/best[3])
}

// overload is a node under attack.
type overload struct {
	b     *testing.B
	node  *Node
	redis *Redis
}

// attack is a load of batches of checks, either by so many callers that wait for their answers, or
// at a rate of checks a second.
type attack struct {
	name     string
	callers  int
	rate     float64
	domain   string // flood, if empty
	oneKey   bool
	together int // batches sent at the same time; 0: one
	conns    int // 0: four
}

func dial(b *testing.B, address string) *grpc.ClientConn {
	c, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	suite.Must(b, err)
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// ready is an encoded message, so that attacking costs little. Answers are not decoded.
type ready []byte

// Marshal, Unmarshal and Name implement encoding.Codec.
func (ready) Marshal(v any) ([]byte, error) { return v.(ready), nil }
func (ready) Unmarshal([]byte, any) error   { return nil }
func (ready) Name() string                  { return "proto" }

// batches returns encoded batches, of distinct keys or of one key.
func (o *overload) batches(a attack) (all []ready) {
	domain := a.domain
	if domain == "" {
		domain = "flood"
	}
	for i := range 64 {
		m := &quotadv1.CheckBatchRequest{}
		for n := range inBatch {
			account := strconv.Itoa(i*inBatch + n)
			if a.oneKey {
				account = "hot"
			}
			m.Requests = append(m.Requests, &quotadv1.CheckRequest{Domain: domain,
				Descriptors: map[string]string{"account": account}})
		}
		body, err := proto.Marshal(m)
		suite.Must(o.b, err)
		all = append(all, body)
	}
	return all
}

// plays runs an attack beside victims, prints the outcome of both, and returns how many checks of
// the attack were decided a second.
func (o *overload) plays(a attack) (decided float64) {
	conns := make([]*grpc.ClientConn, max(a.conns, 4))
	for i := range conns {
		conns[i] = dial(o.b, o.node.GRPC)
		defer conns[i].Close()
		if err := conns[i].Invoke(o.b.Context(), healthv1.Health_Check_FullMethodName,
			ready{}, nil, grpc.ForceCodec(ready{})); err != nil {
			o.b.Fatal(err)
		}
	}
	before, rest, accepted := o.decisions(), int(memoryOf(&o.node.Process, "VmRSS")), o.accepted()
	ctx, cancel := context.WithTimeout(o.b.Context(), overloadStep)
	defer cancel()
	victims := startVictims(o.b, o.node.GRPC, overloadStep)
	begun := time.Now()
	var all sync.WaitGroup
	var sent atomic.Int64
	var most int
	all.Go(func() { o.attacks(ctx, a, conns, &sent) })
	all.Go(func() {
		for ctx.Err() == nil {
			most = max(most, int(memoryOf(&o.node.Process, "VmRSS")))
			time.Sleep(50 * time.Millisecond)
		}
	})
	all.Wait()
	seconds := time.Since(begun).Seconds()
	seen := victims.wait()
	after := o.decisions()
	name := map[bool]string{true: "log", false: "flood"}[a.domain == "log"]
	of := func(limit string, reasons ...string) (n float64) {
		for _, r := range reasons {
			n += after[limit+" "+r] - before[limit+" "+r]
		}
		return n
	}
	failures := 0.0
	for _, limit := range []string{"flood", "log", "victim", "tight"} {
		failures += of(limit, "store_failure", "store_failure_local", "store_failure_allowed")
	}
	decided = of(name, "within_limit", "over_limit") / seconds
	fmt.Printf("%-34s %9.0f %9.0f %9.0f %9.0f  %22s %8v %9.0f %8d %6d\n", a.name,
		float64(sent.Load())/seconds, decided, (after["undecided"]-before["undecided"])/seconds,
		(after["calls unread"]-before["calls unread"])/seconds, seen,
		seen.P99.Round(100*time.Microsecond), failures, (most-rest)>>20, o.accepted()-accepted)
	if admitted := after["tight within_limit"] +
		after["tight store_failure_allowed"]; admitted > 10 {
		o.b.Errorf("%s: %v admitted of a limit of 10", a.name, admitted)
	}
	return decided
}

// attacks sends batches until ctx ends, and waits for those under way.
func (o *overload) attacks(ctx context.Context, a attack, conns []*grpc.ClientConn,
	sent *atomic.Int64) {
	bodies := o.batches(a)
	batch := func(i uint64) {
		sent.Add(inBatch)
		_ = conns[i%uint64(len(conns))].Invoke(context.WithoutCancel(ctx),
			quotadv1.QuotaService_CheckBatch_FullMethodName,
			// The node counts the outcomes.
			bodies[i%uint64(len(bodies))], nil, grpc.ForceCodec(ready{}))
	}
	var all sync.WaitGroup
	defer all.Wait()
	var number atomic.Uint64
	for range a.callers {
		all.Go(func() {
			for ctx.Err() == nil {
				batch(number.Add(1))
			}
		})
	}
	if a.callers > 0 {
		return
	}
	together := max(a.together, 1)
	g, err := load.NewGenerator(load.Config{Region: "us",
		Rate: load.Rate(a.rate / inBatch / float64(together)), MaxInFlight: 512,
		Do: func(context.Context, load.Request) {
			var burst sync.WaitGroup
			for range together {
				burst.Go(func() { batch(number.Add(1)) })
			}
			burst.Wait()
		}})
	if err == nil {
		err = g.Run(ctx)
	}
	if err != nil {
		o.b.Error(err)
	}
}

// shedLine describes the calls that were refused unread; most of them are batches of a hundred.
var shedLine = regexp.MustCompile(`^quotad_calls_shed_total\{port="grpc"\} (\S+)$`)

// undecidedLine describes the requests that the node had no time for, by why.
var undecidedLine = regexp.MustCompile(
	`^quotad_queue_refused_total\{why="(?:full|expired|waited)"\} (\S+)$`)

var decisionLine = regexp.MustCompile(
	`^quotad_decisions_total\{limit="(\w+)",reason="(\w+)"\} (\S+)$`)

// decisions reads the node's counts of decisions, by limit and reason.
func (o *overload) decisions() map[string]float64 {
	answer, err := http.Get("http://" + o.node.Admin + "/metrics")
	suite.Must(o.b, err)
	defer answer.Body.Close()
	all := map[string]float64{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if m := decisionLine.FindStringSubmatch(lines.Text()); m != nil {
			n, err := strconv.ParseFloat(m[3], 64)
			suite.Must(o.b, err)
			all[m[1]+" "+m[2]] = n
		}
		if m := undecidedLine.FindStringSubmatch(lines.Text()); m != nil {
			n, err := strconv.ParseFloat(m[1], 64)
			suite.Must(o.b, err)
			all["undecided"] += n
		}
		if m := shedLine.FindStringSubmatch(lines.Text()); m != nil {
			n, err := strconv.ParseFloat(m[1], 64)
			suite.Must(o.b, err)
			all["calls unread"] = n
		}
	}
	return all
}

// accepted returns how many connections the Redis has accepted since it started.
func (o *overload) accepted() int {
	info, err := o.redis.Client.Info(o.b.Context(), "stats").Result()
	suite.Must(o.b, err)
	_, rest, _ := strings.Cut(info, "total_connections_received:")
	number, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.Atoi(number)
	suite.Must(o.b, err)
	return n
}
