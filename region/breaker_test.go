package region

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/bubble"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/region/store"
)

// relay stands between a store and its Redis, so that it can be cut off, or another Redis put in its place. It must be
// started outside of a bubble.
type relay struct {
	listener net.Listener
	done     sync.WaitGroup

	mu     sync.Mutex
	target string // host:port; empty: cut off
	conns  map[net.Conn]struct{}
}

func startRelay(t *testing.T) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, conns: map[net.Conn]struct{}{}}
	r.done.Go(r.run)
	t.Cleanup(func() {
		_ = l.Close()
		r.lead("")
		r.done.Wait()
	})
	return r
}

func (r *relay) url() string { return "redis://" + r.listener.Addr().String() }

// lead has all connections go to a server from now on; empty: nowhere. Those that stand are ended.
func (r *relay) lead(url string) {
	a := ""
	if url != "" {
		a = url[len("redis://"):]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = a
	for c := range r.conns {
		_ = c.Close()
	}
}

func (r *relay) run() {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		var far net.Conn
		if r.target != "" {
			far, err = net.Dial("tcp", r.target)
		}
		if far == nil || err != nil {
			_ = near.Close()
			r.mu.Unlock()
			continue
		}
		r.conns[near], r.conns[far] = struct{}{}, struct{}{}
		r.mu.Unlock()
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			r.done.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				_, _ = way[0].Close(), way[1].Close()
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(r.conns, way[0])
			})
		}
	}
}

// behind has a region's nodes that start from now on reach its Redis through a relay.
func (c *cluster) behind(r *relay, region string) (reconnect func()) {
	c.onRedis(region)
	direct := c.servers[region]
	r.lead(direct.URL)
	c.servers[region] = &servers.Server{URL: r.url(), Now: direct.Now}
	return func() { r.lead(direct.URL) }
}

// A request that the store leaves without an answer is decided without it at its deadline, not before and not later.
func TestDecidedAtTheDeadline(t *testing.T) {
	for behaviour, want := range map[string]Reason{"deny": StoreFailure, "local": StoreFailureLocal, "allow": StoreFailureAllowed} {
		bubble.Test(t, func(t *testing.T) {
			n := unstarted(t, 1, document(t, 1, hereAndThere, "name: minute, limit: 100, window: 1m, lending_limit: 0.5, on_store_failure: "+behaviour))
			for _, deadline := range []time.Duration{50 * time.Millisecond, time.Second} {
				n.deadline, n.batcher.pace = deadline, newPace(deadline)
				begun := time.Now()
				d, err := n.Check(t.Context(), request("a"))
				if err != nil || d.Reason != want || time.Since(begun) != deadline {
					t.Errorf("%s: after %v, deadline %v: %+v, %v", behaviour, time.Since(begun), deadline, d, err)
				}
				if groups := group([]waiting{n.batcher.first(t)}); len(groups) != 0 {
					t.Error("it is sent although nobody waits for it any more")
				}
			}
		})
	}
}

// What nobody waits for any more is not sent; what others wait for in the same batch is.
func TestWhoeverLeftIsNotCharged(t *testing.T) {
	started(t, document(t, 1, alone, "name: minute, limit: 100, window: 1m"), []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		r := n.rules.Load()
		ctx, cancel := context.WithCancel(t.Context())
		idle := newBatcher(nil, nil, nil, queueLength, time.Second, nil) // nothing serves it
		left := &Node{config: n.config, batcher: idle, breakers: n.breakers, closed: n.closed}
		w := waiting{rules: r, applied: r.Match(asked(request("a"))), cost: 30, commit: true, until: time.Now().Add(time.Second)}
		gone := make(chan error)
		go func() {
			_, err := left.ask(ctx, w)
			gone <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		answer := make(chan answered, 1)
		w.answer, w.cost = answer, 5
		n.batcher.decide(t.Context(), []waiting{idle.first(t), w})
		if a := <-answer; !a.ok() || a.decided.Buckets[0].Used != 5 {
			t.Errorf("used %d, only 5 had somebody waiting: %+v", a.decided.Buckets[0].Used, a)
		}
	})
}

// The first call that fails trips the breaker, then nobody waits for the store, and a probe lets requests through again.
func TestBreaker(t *testing.T) {
	r := startRelay(t)
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		reconnect := c.behind(r, "us")
		n := c.start("us/n1", document(t, 1, alone, "name: minute, limit: 100, window: 1m, on_store_failure: deny"))
		if d := n.check(t, request("a")); !d.Allowed || n.breakers.tripped(store.Whole) {
			t.Fatalf("the store is there: %+v", d)
		}
		r.lead("")
		for i := range 3 {
			begun := time.Now()
			if d := n.check(t, request("a")); d.Reason != StoreFailure || time.Since(begun) != 0 {
				t.Errorf("request %d, after %v: %+v", i, time.Since(begun), d)
			}
			if !n.breakers.tripped(store.Whole) || n.batcher.load().queued > 0 {
				t.Errorf("request %d: the breaker is not tripped", i)
			}
		}
		time.Sleep(10 * probeEvery)
		if d := n.check(t, request("a")); d.Reason != StoreFailure || !n.breakers.tripped(store.Whole) {
			t.Errorf("no probe was answered: %+v", d)
		}
		reconnect()
		c.within(2*time.Second, "a probe to be answered", func() bool { return !n.breakers.tripped(store.Whole) })
		if d := n.check(t, request("a")); !d.Allowed || d.Remaining != 98 {
			t.Errorf("the store is back: %+v", d)
		}
	})
}

// What queued before the breaker tripped is not sent after it.
func TestQueuedWhenTheBreakerTrips(t *testing.T) {
	started(t, document(t, 1, alone, "name: minute, limit: 100, window: 1m"), []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		answer := make(chan answered, 1)
		r := n.rules.Load()
		n.breakers.trip(store.Whole)
		n.batcher.decide(t.Context(), []waiting{{rules: r, applied: r.Match(asked(request("a"))), cost: 30, commit: true, answer: answer}})
		if a := <-answer; !errors.Is(a.err, errOutOfReach) {
			t.Errorf("answered %+v", a)
		}
		c.within(time.Second, "a probe", func() bool { return !n.breakers.tripped(store.Whole) })
		if d := n.check(t, request("a")); d.Remaining != 99 {
			t.Errorf("it was charged all the same: %+v", d)
		}
	})
}

// Each shard has a breaker of its own: what lies in the others is decided by the store.
func TestBreakersOfShards(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, document(t, 1, hereAndThere, "name: minute, limit: 1000, window: 1m, lending_limit: 0.5"))
		r := *n.rules.Load()
		first, second := store.Shard(store.Prefix+":0}"), store.Shard(store.Prefix+":1}")
		r.Shards = store.Shards{first, second}
		n.rules.Store(&r)
		n.breakers = newBreakers(r.Shards)
		n.breakers.trip(first)
		waited := map[store.Shard]bool{}
		for _, account := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
			q := request(account)
			shard := store.ShardOf(r.Match(q.Domain, q.Descriptors)[0].Target.Key)
			begun := time.Now()
			if _, err := n.Check(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			waited[shard] = true
			if took, want := time.Since(begun), map[store.Shard]time.Duration{first: 0, second: n.deadline}[shard]; took != want {
				t.Errorf("account %s in shard %s waited %v, want %v", account, shard, took, want)
			}
		}
		if len(waited) != 2 {
			t.Errorf("shards %v: the test shows nothing", waited)
		}
	})
}
