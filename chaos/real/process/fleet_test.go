package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/load"
)

// builds is the folder of the binary, which the tests share.
var builds string

func TestMain(m *testing.M) {
	var err error
	if node := os.Getenv(victimsOf); node != "" {
		if err = beVictims(node, os.Getenv(victimsFor)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if builds, err = os.MkdirTemp("", "quotad-build-"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(builds) // the system clears such folders as well
		os.Exit(code)
	}))
}

var build = sync.OnceValues(func() (string, error) { return Build(context.Background(), builds) })

func binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	suite.Must(t, err)
	return path
}

const limits = `
version: 1
regions:
  us: {weight: 60}
  eu: {weight: 40}
limits:
  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: 100, window: 1s}
`

// history records answers and waits for some.
type history struct {
	judge *oracle.Judge
	mu    sync.Mutex
	more  sync.Cond
	all   []oracle.Answer
}

func newHistory(l oracle.Limit) *history {
	h := &history{judge: oracle.New(l)}
	h.more.L = &h.mu
	return h
}

func (h *history) record(a oracle.Answer) {
	h.judge.Record(a)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, a)
	h.more.Broadcast()
}

// await waits for an answer, sent from now on, that fulfils a condition.
func (h *history) await(t *testing.T, what string, like func(oracle.Answer) bool) {
	t.Helper()
	from := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), suite.Patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.more.Broadcast()
	})()
	h.mu.Lock()
	defer h.mu.Unlock()
	for seen := len(h.all); ctx.Err() == nil; h.more.Wait() {
		for ; seen < len(h.all); seen++ {
			if a := h.all[seen]; a.Sent.After(from) && like(a) {
				return
			}
		}
	}
	t.Fatalf("no answer was %s", what)
}

// admittedBy matches admissions by a node since its last start.
func admittedBy(n *Node) func(oracle.Answer) bool {
	name := fmt.Sprintf("%s#%d", n.Name, n.Starts())
	return func(a oracle.Answer) bool {
		return a.Region == n.Region && a.Node == name && a.Outcome == oracle.Admitted
	}
}

// TestFleet kills, pauses, cuts and restarts real processes under load, and judges the answers.
func TestFleet(t *testing.T) {
	f, err := Start(t.Context(), t, Config{Quotad: binary(t), Limits: limits,
		Settings: []string{"chaos: true"},
		Regions:  []RegionConfig{{Name: "us", Nodes: 2}, {Name: "eu"}}})
	suite.Must(t, err)
	limit := oracle.Limit{Limit: 100, Window: time.Second, Algorithm: "fixed_window",
		ClockSlack: 10 * time.Millisecond}
	h := newHistory(limit)
	ctx, stop := context.WithCancel(t.Context())
	var flows sync.WaitGroup
	defer flows.Wait()
	defer stop()
	offer := func(region string, rate int64, grpc bool) *Flow {
		q := Question{Domain: "api", Descriptors: map[string]string{"account": "42"}, GRPC: grpc}
		flow, err := f.Flow(FlowConfig{Region: region, Rate: load.Rate(rate), Question: q,
			Bucket: "account/42", Limit: limit, Record: h.record})
		suite.Must(t, err)
		flows.Go(func() {
			if err := flow.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		return flow
	}
	us := offer("us", 110, false)
	offer("eu", 15, true)
	h.await(t, "admitted on rights that were borrowed",
		func(a oracle.Answer) bool { return a.Region == "us" && a.Share > a.Entitlement })

	n1, n2, eu := f.Region("us").Nodes[0], f.Region("us").Nodes[1], f.Region("eu").Nodes[0]
	if n1.IP == n2.IP || n1.IP == eu.IP {
		t.Error("nodes share an address")
	}
	n2.Kill()
	h.await(t, "admitted by the node that is left", admittedBy(n1))
	suite.Must(t, n2.Start(t.Context()))
	h.await(t, "admitted by the node that came back", admittedBy(n2))

	suite.Must(t, n1.Pause())
	h.await(t, "left without an answer",
		func(a oracle.Answer) bool { return a.Outcome == oracle.Unknown })
	suite.Must(t, n1.Resume())
	h.await(t, "admitted by the node that goes on", admittedBy(n1))

	if err := eu.cut(t.Context(), "us", "both", time.Minute); err != nil {
		t.Fatal(err)
	}
	h.await(t, "degraded on both sides: us",
		func(a oracle.Answer) bool { return a.Region == "us" && a.Degraded })
	h.await(t, "degraded on both sides: eu",
		func(a oracle.Answer) bool { return a.Region == "eu" && a.Degraded })
	if err := eu.cut(t.Context(), "us", "both", 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Meet(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	flows.Wait()

	if keys, err := f.Region("us").Redis.Client.DBSize(t.Context()).Result(); err != nil ||
		keys == 0 {
		t.Errorf("the Redis of us has %d keys, %v", keys, err)
	}
	if err := n1.Stop(t.Context()); err != nil || n1.Running() {
		t.Errorf("stop n1: %v", err)
	}
	if us.Unsent() == 0 {
		t.Error("requests to a node that was dead count as sent")
	}
	v := h.judge.Verdict()
	t.Log(v)
	if v.Proven() || v.CellsChecked < 5 {
		t.Errorf("%v\n%v", v, v.Violations)
	}
}

func TestRedisIsReplicatedAndStartedAgain(t *testing.T) {
	primary, err := StartRedis(t.Context(), t,
		RedisConfig{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	suite.Must(t, err)
	replica, err := StartRedis(t.Context(), t, RedisConfig{ReplicaOf: primary})
	suite.Must(t, err)
	suite.Must(t, primary.Client.Set(t.Context(), "k", "v", 0).Err())
	err = replica.await(t.Context(), "a copy",
		func(ctx context.Context) error { return replica.Client.Get(ctx, "k").Err() })
	suite.Must(t, err)
	primary.Kill()
	if err := primary.Pause(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a dead process is paused: %v", err)
	}
	suite.Must(t, primary.Start(t.Context()))
	if got, err := primary.Client.Get(t.Context(), "k").Result(); got != "v" || err != nil {
		t.Errorf("after kill -9 and a restart k is %q, %v", got, err)
	}
}

func TestAProcessThatEndsTellsWhy(t *testing.T) {
	_, err := StartRedis(t.Context(), t, RedisConfig{Args: []string{"--no-such-thing", "1"}})
	if err == nil || !strings.Contains(err.Error(), "ended before it was answering") ||
		!strings.Contains(err.Error(), "no-such-thing") {
		t.Errorf("the error is %v", err)
	}
}

// cut cuts the node off from a region for d, in a direction (in, out or both); 0 heals. The node
// needs the setting chaos: true.
func (n *Node) cut(ctx context.Context, region, direction string, d time.Duration) error {
	_, err := n.calls.Cut(ctx, region, direction, d)
	return err
}
