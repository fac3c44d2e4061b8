package process

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/load"
)

// times is how often each mishap is provoked. make faults and make changes pass more than the
// few that fit in a test.
var times = flag.Int("times", 0, "how often to provoke each mishap; 0: a few times")

// timesOr returns the flag if it is set, or else a default.
func timesOr(few int) int {
	if *times > 0 {
		return *times
	}
	return few
}

// raise starts a fleet.
func raise(t *testing.T, c Config) *Fleet {
	t.Helper()
	c.Quotad = binary(t)
	f, err := Start(t.Context(), t, c)
	suite.Must(t, err)
	return f
}

// pause sleeps in real time, because what it waits for happens in other processes.
func pause(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// command runs quotad and reads its JSON.
func command(t testing.TB, into any, args ...string) {
	t.Helper()
	suite.Must(t, attempt(t, into, args...))
}

func attempt(t testing.TB, into any, args ...string) error {
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err == nil && into != nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		return fmt.Errorf("quotad %s: %w\n%s%s", strings.Join(args, " "), err, out, wrong.String())
	}
	return nil
}

// written returns the path of a file with a document.
func written(t testing.TB, document string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "limits.yaml")
	suite.Must(t, os.WriteFile(path, []byte(document), 0o644))
	return path
}

// term is one line of the output of quotad limits bound.
type term struct {
	Cause, When string
	AtMost      *int64 `json:"at_most"`
	Regions     map[string]int64
}

// bounds are the printed bounds of a limit.
type bounds []term

func printed(t testing.TB, document, limit string, flags ...string) bounds {
	t.Helper()
	var b struct {
		Limits []struct{ Excess bounds }
	}
	command(t, &b, append([]string{"limits", "bound", written(t, document), "--limit", limit, "-o", "json"},
		flags...)...)
	return b.Limits[0].Excess
}

// of returns the bound for a mishap, for one region if bounds are printed by region.
func (b bounds) of(t testing.TB, region, cause, when string) int64 {
	t.Helper()
	for _, e := range b {
		if e.Cause != cause || e.When != when || e.AtMost == nil {
			continue
		}
		if units, known := e.Regions[region]; known {
			return units
		}
		return *e.AtMost
	}
	t.Fatalf("quotad limits bound says nothing of %s, %q", cause, when)
	return 0
}

// bucket is one limit of the fleet applied to one key, with its judge. The limits of these tests
// are keyed by their own name.
type bucket struct {
	*history
	t          *testing.T
	limit      oracle.Limit
	name, key  string
	unanswered atomic.Int64 // units of sent requests that got no answer
	local      atomic.Int64 // units admitted without a store
	longest    atomic.Int64 // time until a decision, ns
}

// fixed returns a fixed window for the judge.
func fixed(limit int64, window time.Duration) oracle.Limit {
	return oracle.Limit{Limit: limit, Window: window, Algorithm: "fixed_window",
		ClockSlack: time.Millisecond}
}

func newBucket(t *testing.T, name, key string, l oracle.Limit) *bucket {
	return &bucket{history: newHistory(l), t: t, limit: l, name: name, key: key}
}

func (b *bucket) question() Question {
	return Question{Domain: "api", Descriptors: map[string]string{b.name: b.key}}
}

// note records an answer, and counts what the judge does not report.
func (b *bucket) note(a oracle.Answer) {
	b.record(a)
	if a.Outcome == oracle.Unknown && a.Sequence == 0 {
		b.unanswered.Add(a.Cost)
		return
	}
	took := int64(a.Seen.Sub(a.Sent))
	for old := b.longest.Load(); took > old && !b.longest.CompareAndSwap(old,
		took); old = b.longest.Load() {
	}
	if a.Outcome != oracle.Unknown {
		return
	}
	b.local.Add(a.Cost)
}

// certain returns what is above the limit for certain: without requests that got no answer, and
// without those that were admitted without a store so near the edge of a window that nobody knows
// which of the two they belong to.
func (b *bucket) certain() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	judge, slack := oracle.New(b.limit), b.limit.ClockSlack
	for _, a := range b.all {
		without := a.Outcome == oracle.Unknown
		if without && (a.Sequence == 0 || b.limit.CellOf(a.Sent.Add(-slack).UnixMicro()) !=
			b.limit.CellOf(a.Seen.Add(slack).UnixMicro())) {
			continue
		}
		judge.Record(a)
	}
	return judge.Verdict().MaxExcess
}

// alone returns what may be above the limit because nodes admitted units without their Redis: the
// printed bound of each region where one did. On a busy machine even an unharmed Redis is out of
// reach for moments.
func (b *bucket) alone(printed bounds) (units int64) {
	for region := range b.withoutRedis() {
		units += printed.of(b.t, region, "local", "k of n nodes cut off, here all of them")
	}
	return units
}

// withoutRedis returns the nodes of each region that admitted units without their Redis.
func (b *bucket) withoutRedis() map[string]map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	nodes := map[string]map[string]bool{}
	for _, a := range b.all {
		if a.Outcome == oracle.Unknown && a.Sequence != 0 {
			if nodes[a.Region] == nil {
				nodes[a.Region] = map[string]bool{}
			}
			nodes[a.Region][a.Node] = true
		}
	}
	return nodes
}

// spend asks a node for units, one request after another, until so many are admitted or none more
// is. It returns how many were admitted. A starved node has no time for some requests; those are
// asked again.
func (b *bucket) spend(n *Node, units int64) (got int64) {
	b.t.Helper()
	q, answered := b.question(), time.Now()
	for q.Cost = 64; q.Cost > 0 && got < units; {
		if q.Cost > units-got {
			q.Cost /= 2
			continue
		}
		a, sent := n.Ask(b.t.Context(), q, b.name, b.limit)
		if sent {
			b.note(a)
		}
		if !sent || a.Outcome == oracle.Unknown && a.Sequence == 0 {
			if time.Since(answered) > suite.Patience {
				b.t.Fatalf("%s does not answer\n%s", n.name, n.Output())
			}
			pause(b.t, 10*time.Millisecond)
			continue
		}
		answered = time.Now()
		if a.Outcome == oracle.Denied {
			q.Cost /= 2
		} else {
			got += q.Cost
		}
	}
	return got
}

// waitForStore waits until a node decides with its Redis.
func (b *bucket) waitForStore(n *Node) {
	b.t.Helper()
	q := b.question()
	q.Cost = 1
	suite.Eventually(b.t, n.name+" decides through its Redis", func() bool {
		a, sent := n.Ask(b.t.Context(), q, b.name, b.limit)
		if sent {
			b.note(a)
		}
		return a.Share > 0
	})
}

// drain spends all that nodes admit, until none of them admits any more for a while, and returns
// how much that was. Rights move meanwhile.
func (b *bucket) drain(quiet time.Duration, nodes ...*Node) (got int64) {
	b.t.Helper()
	for last := time.Now(); time.Since(last) < quiet; {
		for _, n := range nodes {
			if more := b.spend(n, b.limit.Limit); more > 0 {
				got += more
				last = time.Now()
			}
		}
		pause(b.t, 10*time.Millisecond)
	}
	return got
}

// spendFor asks nodes in turn for the whole limit, again and again for a while.
func (b *bucket) spendFor(d time.Duration, nodes ...*Node) {
	b.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); pause(b.t, 20*time.Millisecond) {
		for _, n := range nodes {
			b.spend(n, b.limit.Limit)
		}
	}
}

// excess returns what the judge finds above the limit, with unknown outcomes and without.
func (b *bucket) excess() (doubted, proven int64) {
	v := b.judge.Verdict()
	return v.MaxExcess, max(v.MaxKnown-v.Limit, 0)
}

// answered returns what the judge finds above the limit without the requests that got no answer. A
// starved node may have charged them all the same.
func (b *bucket) answered() int64 {
	doubted, _ := b.excess()
	return max(doubted-b.unanswered.Load(), 0)
}

// offer offers units a second to nodes in turn, until stop is called.
func (b *bucket) offer(f *Fleet, rate int64, nodes ...*Node) (flow *Flow, stop func()) {
	b.t.Helper()
	return b.offerTo(f, rate, b.note, nodes...)
}

// offerTo offers units as offer does, and has another record the answers.
func (b *bucket) offerTo(f *Fleet, rate int64, record func(oracle.Answer), nodes ...*Node) (flow *Flow,
	stop func()) {
	b.t.Helper()
	flow, err := f.Flow(FlowConfig{Region: nodes[0].Region, Rate: load.Rate(rate),
		Question: b.question(), Bucket: b.name,
		Limit: b.limit, Record: record})
	suite.Must(b.t, err)
	flow.nodes = nodes
	ctx, cancel := context.WithCancel(b.t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = flow.Run(ctx) }) // fails only if it is run twice
	return flow, func() { cancel(); done.Wait() }
}

// used returns what counts of the bucket in a node's region.
func (b *bucket) used(n *Node) int64 {
	b.t.Helper()
	var ledger struct{ Used int64 }
	var err error
	for range 5 { // on a busy machine a node may be too late to look
		if err = attempt(b.t, &ledger, "explain", "--ledger", b.name, "--domain", "api", b.name+"="+b.key,
			"--addr", "http://"+n.Admin, "-o", "json"); err == nil {
			return ledger.Used
		}
	}
	b.t.Fatal(err)
	return 0
}

// wantProvoked checks that an excess is at most the printed bound and what starved nodes may have
// admitted besides, without their Redis, and that at least half of the bound was provoked. A starved
// node may have charged requests that got no answer.
func (b *bucket) wantProvoked(what string, printed, besides, excess int64) {
	b.t.Helper()
	unanswered := b.unanswered.Load()
	b.t.Logf("%-64s printed %4d, provoked %4d, not answered %d", what, printed, excess, unanswered)
	if excess > printed+besides || 2*(excess+unanswered) < printed {
		b.t.Errorf("%s: %d above the limit, printed is %d", what, excess, printed)
	}
}

func nodesOf(regions ...*Region) (all []*Node) {
	for _, r := range regions {
		all = append(all, r.Nodes...)
	}
	return all
}
