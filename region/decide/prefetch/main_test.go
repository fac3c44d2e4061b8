package prefetch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is the clock of a twin.
func now() quantity.StoreTime { return quantity.StoreTime(time.Now().UnixMicro()) }

// node is what a node holds, and what it asks for that with.
type node struct {
	*Chunks
	rules          *rules.Rules
	trips, refunds atomic.Int64 // to the store
	takes          atomic.Int64 // ns of a round trip
	store.Servers
}

// holding runs a test in virtual time on a node that may hold units of 1,000 a minute.
func holding(t *testing.T, f func(t *testing.T, n *node)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		d := documents.Parse(t, 1, []string{"here: {weight: 1}"},
			"name: minute, limit: 1000, window: 1m, consistency: prefetch")
		n := &node{rules: rules.New(barrier.Only(d, "here"), nil)}
		_, n.Servers = lab.NewTwin(now, "r").Connect(time.Now)
		s := store.New(store.Parts{Servers: n, NewSecret: func() string { return "secret" }})
		if _, err := s.Open(t.Context(), store.Opening{Region: "here", Epoch: n.rules.Epoch, Bootstrap: true}); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		elapsed := func() time.Duration { return time.Since(begun) }
		q := queue.New(queue.Config{Store: s, Rights: rights{}, Now: time.Now, Elapsed: elapsed,
			Log: slog.New(slog.DiscardHandler), On: &queue.Goroutines{}, Closed: make(chan struct{})})
		n.Chunks = New(Config{Nodes: 1, Store: s, Terms: terms{n, s}, Rights: rights{}, Queue: q, Elapsed: elapsed, On: &queue.Goroutines{}})
		ctx, cancel := context.WithCancel(t.Context())
		var runs sync.WaitGroup
		runs.Go(func() { q.Run(ctx) })
		runs.Go(func() { n.Run(ctx) })
		t.Cleanup(func() {
			cancel()
			runs.Wait()
		})
		synctest.Wait()
		f(t, n)
	})
}

// applied returns the limit that applies to an account's requests.
func (n *node) applied(account string) *rules.Applied {
	return n.rules.Match("api", map[string]string{"account": account})[0]
}

// admits has units of an account admitted, from chunks or by the store.
func (n *node) admits(t *testing.T, account string, cost quantity.Units) {
	t.Helper()
	w := queue.Ask{Rules: n.rules, Applied: []*rules.Applied{n.applied(account)}, Cost: cost, Commit: true}
	if _, paid := n.Spend(w.Rules, w.Applied, cost); paid {
		return
	}
	if a, err := n.queue.Decide(t.Context(), w.Waits(time.Now(), time.Second)); err != nil || !a.Admitted() {
		t.Fatalf("%+v, %v", a, err)
	}
	n.TopUp(&w)
}

// stored returns what the store counts as used of an account's bucket.
func (n *node) stored(t *testing.T, account string) quantity.Units {
	t.Helper()
	found, err := n.store.Inspect(t.Context(), algorithms.Inspect{
		Fence: algorithms.Fence{Epoch: n.rules.Epoch}, Target: n.rules.Target(n.applied(account).Bucket, 0)})
	suite.Must(t, err)
	return found.State.Used
}

// Exec implements store.Servers.
func (n *node) Exec(ctx context.Context, calls []store.Call) []store.Reply {
	n.trips.Add(1)
	for _, c := range calls {
		if _, ok := c.Op.(*store.Op[algorithms.Settle, algorithms.Settled]); ok {
			n.refunds.Add(1)
		}
	}
	time.Sleep(time.Duration(n.takes.Load()))
	return n.Servers.Exec(ctx, calls)
}

// terms are those of a node's one document.
type terms struct {
	*node
	store *store.Store
}

func (t terms) Rules() *rules.Rules      { return t.rules }
func (t terms) Generation() uint64       { return t.store.Generation() }
func (t terms) Stopped() *tenure.Stopped { return nil }

// rights knows of no bucket.
type rights struct{}

func (rights) Observe([]*rules.Applied, *algorithms.Decide, algorithms.Decided) {}
func (rights) ObserveAhead([]*rules.Applied, algorithms.Decided)                {}
func (rights) ExistsFound(*rules.Applied) quantity.StoreTime                    { return 0 }
func (rights) Exists(*exchange.Bucket) quantity.StoreTime                       { return 0 }
func (rights) Lose(context.Context, *exchange.Bucket, error) bool               { return false }
