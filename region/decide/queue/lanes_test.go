package queue

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/region/memory/store"
)

// serversOf are the servers of a store's shards, each of which takes a time for a round trip. A
// round trip to several takes as long as the slowest of them.
type serversOf struct {
	store.Servers
	takes map[string]time.Duration // by name

	mu    sync.Mutex
	names map[store.Shard]string
	trips []map[string]int // of each round trip, how many calls each server got
}

// Server implements store.Servers.
func (s *serversOf) Server(_ context.Context, shard store.Shard) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[shard]
}

// moves has other servers hold the shards.
func (s *serversOf) moves(names map[store.Shard]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names, s.trips = names, nil
}

// Exec implements store.Servers.
func (s *serversOf) Exec(ctx context.Context, calls []store.Call) []store.Reply {
	var takes time.Duration
	s.mu.Lock()
	to := map[string]int{}
	for _, c := range calls {
		name := s.names[c.Shard]
		to[name]++
		takes = max(takes, s.takes[name])
	}
	s.trips = append(s.trips, to)
	s.mu.Unlock()
	time.Sleep(takes)
	return s.Servers.Exec(ctx, calls)
}

// divided returns a queue whose store has these servers, each with one shard or several.
func divided(t *testing.T, s *serversOf, shards store.Shards) node {
	t.Helper()
	_, s.Servers = lab.NewDividedTwin(now, "r", shards).Connect(time.Now)
	n := on(t, store.New(store.Parts{Servers: s, Shards: shards,
		NewSecret: func() string { return "secret" }}), minute)
	n.opened(t)
	synctest.Wait()
	return n
}

// Requests for the shards of one server do not wait for another server that is slow.
func TestSlowServerDelaysItsOwnShards(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		shards := store.Divided(2)
		slow, quick := shards[0], shards[1]
		s := &serversOf{names: map[store.Shard]string{slow: "a", quick: "b"},
			takes: map[string]time.Duration{"a": 30 * time.Millisecond, "b": 100 * time.Microsecond}}
		n := divided(t, s, shards)
		until := time.Now().Add(time.Second)
		var callers sync.WaitGroup
		// Each of the slow server's round trips carries one account, so a request waits for half a
		// second, of the one that it may.
		for _, account := range n.accountsIn(slow, 16) {
			callers.Go(func() {
				for time.Now().Before(until) {
					begun := time.Now()
					if a, err := n.Decide(t.Context(), n.of(account)); err != nil || a.Err != nil {
						t.Error(err, a.Err)
					}
					time.Sleep(time.Until(begun.Add(time.Millisecond)))
				}
			})
		}
		for _, account := range n.accountsIn(quick, 8) {
			callers.Go(func() {
				for time.Now().Before(until) {
					begun := time.Now()
					a, err := n.Decide(t.Context(), n.of(account))
					if took := time.Since(begun); err != nil || !a.Admitted() ||
						took > 5*time.Millisecond {
						t.Errorf("%+v after %v, %v", a, took, err)
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		callers.Wait()
	})
}

// The requests of a batch go to all servers at once, each server's in a round trip of its own. When
// shards have moved to another server, their requests go with those of that server.
func TestLanesFollowTheServers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		shards := store.Divided(3)
		s := &serversOf{names: map[store.Shard]string{shards[0]: "a", shards[1]: "b", shards[2]: "a"},
			takes: map[string]time.Duration{"a": 300 * time.Microsecond, "b": 200 * time.Microsecond}}
		n := divided(t, s, shards)
		var accounts []string
		for _, shard := range shards {
			accounts = append(accounts, n.accountsIn(shard, 4)...)
		}
		asks := func(want ...map[string]int) {
			t.Helper()
			var batch []Ask
			for _, account := range accounts {
				batch = append(batch, n.of(account))
			}
			begun := time.Now()
			said, errs := n.DecideAll(t.Context(), batch)
			if took := time.Since(begun); took != s.takes["a"] {
				t.Errorf("after %v", took)
			}
			for i, a := range said {
				if errs[i] != nil || !a.Admitted() {
					t.Errorf("request %d: %+v, %v", i, a, errs[i])
				}
			}
			slices.SortFunc(s.trips, func(a, b map[string]int) int { return b["a"] - a["a"] })
			if !reflect.DeepEqual(s.trips, want) {
				t.Errorf("round trips %v, want %v", s.trips, want)
			}
		}
		s.trips = nil
		asks(map[string]int{"a": 2}, map[string]int{"b": 1})
		s.moves(map[store.Shard]string{shards[0]: "a", shards[1]: "a", shards[2]: "b"})
		time.Sleep(sortEvery)
		asks(map[string]int{"a": 2}, map[string]int{"b": 1})
		s.moves(map[store.Shard]string{shards[0]: "a", shards[1]: "a", shards[2]: "a"})
		time.Sleep(sortEvery)
		asks(map[string]int{"a": 3})
	})
}

// A caller is busy when its work fills every lane. One slow server does not have it refused what is
// for the others.
func TestBusyInEveryLane(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		shards := store.Divided(2)
		s := &serversOf{names: map[store.Shard]string{shards[0]: "a", shards[1]: "b"},
			takes: map[string]time.Duration{"a": 40 * time.Millisecond, "b": 40 * time.Millisecond}}
		n := divided(t, s, shards)
		var all sync.WaitGroup
		for i, shard := range shards {
			if n.Busy("flood", 50*time.Millisecond) {
				t.Errorf("%d of 2 servers have much to do for it", i)
			}
			for _, account := range n.accountsIn(shard, 200) {
				w := n.of(account)
				w.Caller = "flood"
				all.Go(func() {
					_, err := n.Decide(t.Context(), w)
					// Not all have their turn within the second that they wait.
					if waited := time.Since(w.Came); err != nil && (!IsOverload(err) || waited < time.Second/2) {
						t.Errorf("after %v: %v", waited, err)
					}
				})
			}
			synctest.Wait()
		}
		if !n.Busy("flood", 50*time.Millisecond) {
			t.Errorf("not busy: %+v", n.Load())
		}
		if waits := n.Load().Queued; waits < 100 {
			t.Errorf("%d requests wait", waits)
		}
		if n.Busy("victim", 50*time.Millisecond) {
			t.Error("nothing waits for this caller")
		}
		all.Wait()
	})
}
