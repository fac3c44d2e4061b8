package queue

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// minute is a limit that most of these tests ask for.
const minute = "name: minute, limit: 1000000, window: 1m"

// now is the clock of a twin.
func now() quantity.StoreTime { return quantity.StoreTime(time.Now().UnixMicro()) }

// rulesOf returns the rules of a document with these limits, in a region of its own.
func rulesOf(t testing.TB, serial int, shards store.Shards, limits ...string) *rules.Rules {
	t.Helper()
	d := documents.Parse(t, serial, []string{"here: {weight: 1}"}, limits...)
	return rules.New(barrier.Only(d, "here"), shards)
}

// node is a queue, with the store that it asks under some rules.
type node struct {
	*Queue
	store *store.Store
	rules *rules.Rules
}

// on returns a queue on a store, in which nothing runs.
func on(t testing.TB, s *store.Store, limits ...string) node {
	t.Helper()
	begun := time.Now()
	return node{store: s, rules: rulesOf(t, 1, s.Shards(), limits...),
		Queue: New(Config{Store: s, Rights: &seen{until: map[string]quantity.StoreTime{}},
			Now: time.Now, Elapsed: func() time.Duration { return time.Since(begun) }, On: &Goroutines{},
			Log: slog.New(slog.DiscardHandler), Closed: make(chan struct{})})}
}

// idle returns a queue in which nothing runs, whose store is not open.
func idle(t testing.TB, limits ...string) node {
	t.Helper()
	s, _ := lab.NewTwin(now, "a").ConnectWithin(time.Second, time.Now)
	return on(t, s, limits...)
}

// busy returns a queue at work on a store that takes its time.
func busy(t *testing.T) (node, *lab.Busy) {
	t.Helper()
	_, way := lab.NewTwin(now, "r").Connect(time.Now)
	s := lab.NewBusy(way)
	n := on(t, store.New(store.Parts{Servers: s, NewSecret: func() string { return "secret" }}), minute)
	n.opened(t)
	synctest.Wait()
	return n, s
}

// opened opens the store, and has the queue work until the test ends.
func (n node) opened(t *testing.T) {
	t.Helper()
	if _, err := n.store.Open(t.Context(), store.Opening{Region: "here", Epoch: n.rules.Epoch, Bootstrap: true}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	runs.Go(func() { n.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		runs.Wait()
	})
}

// lane returns the lane of a queue that has one.
func (n node) lane() *batcher { return n.lanes.all[0] }

// of is a request of one unit of an account's, which waits for a second.
func (n node) of(account string) Ask { return ask(n.rules, account).Waits(time.Now(), time.Second) }

// ask is a request of one unit of an account's.
func ask(r *rules.Rules, account string) Ask {
	return Ask{Rules: r, Applied: r.Match("api", map[string]string{"account": account}), Cost: 1, Commit: true}
}

// accountsIn returns some accounts whose requests are decided in a shard.
func (n node) accountsIn(shard store.Shard, some int) (all []string) {
	for i := 0; len(all) < some; i++ {
		account := strconv.Itoa(i)
		if store.ShardOf(n.of(account).Applied[0].Target.Key) == shard {
			all = append(all, account)
		}
	}
	return all
}

// seen remembers until when buckets exist that the store was asked about. Safe for concurrent use.
type seen struct {
	mu    sync.Mutex
	until map[string]quantity.StoreTime
}

// Observe implements Rights.
func (s *seen) Observe(of []*rules.Applied, _ *algorithms.Decide, d algorithms.Decided) {
	s.ObserveAhead(of, d)
}

// ObserveAhead implements Rights.
func (s *seen) ObserveAhead(of []*rules.Applied, d algorithms.Decided) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range of {
		s.until[a.Bucket.ID] = max(s.until[a.Bucket.ID], d.Buckets[i].ExistsUntil)
	}
}

// ExistsFound implements Rights.
func (s *seen) ExistsFound(a *rules.Applied) quantity.StoreTime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until[a.Bucket.ID]
}
