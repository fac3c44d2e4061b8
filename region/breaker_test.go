package region_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/store"
)

// relay stands between a store and its Redis, so that it can be cut off, or another Redis put in
// its place. It must be started outside of a bubble.
type relay struct {
	listener net.Listener
	rewrites func([]byte) []byte // what goes to the Redis; nil: it goes as it is
	done     sync.WaitGroup

	mu     sync.Mutex
	target string // host:port; empty: cut off
	conns  map[net.Conn]struct{}
}

func startRelay(t *testing.T) *relay {
	t.Helper()
	return startRewriting(t, nil)
}

// startRewriting starts a relay that changes what goes to the Redis.
func startRewriting(t *testing.T, rewrites func([]byte) []byte) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	r := &relay{listener: l, rewrites: rewrites, conns: map[net.Conn]struct{}{}}
	r.done.Go(r.run)
	t.Cleanup(func() {
		_ = l.Close()
		r.lead("")
		r.done.Wait()
	})
	return r
}

// rewriter changes what is written.
type rewriter struct {
	io.Writer
	change func([]byte) []byte
}

// Write implements io.Writer.
func (w rewriter) Write(b []byte) (int, error) {
	_, err := w.Writer.Write(w.change(b))
	return len(b), err
}

func (r *relay) url() string { return "redis://" + r.listener.Addr().String() }

// lead sends all connections to a server from now on, or nowhere if it is empty. It ends the
// present connections.
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
				to := io.Writer(way[0])
				if r.rewrites != nil && way[0] == far {
					to = rewriter{far, r.rewrites}
				}
				_, _ = io.Copy(to, way[1])
				_, _ = way[0].Close(), way[1].Close()
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(r.conns, way[0])
			})
		}
	}
}

// behind makes a region's nodes that start from now on reach its Redis through a relay.
func (c *cluster) behind(r *relay, region string) (reconnect func()) {
	c.onRedis(region)
	direct := c.servers[region]
	r.lead(direct.URL)
	c.servers[region] = &servers.Server{URL: r.url(), Now: direct.Now}
	return func() { r.lead(direct.URL) }
}

// startBehind starts a node that alone reaches its region's Redis through a relay.
func (c *cluster) startBehind(r *relay, name string, d *policy.Document) (n *running, reconnect func()) {
	c.t.Helper()
	of, _, _ := strings.Cut(name, "/")
	direct := c.servers[of]
	reconnect = c.behind(r, of)
	n = c.start(name, d)
	c.servers[of] = direct
	return n, reconnect
}

// The first call that fails trips the breaker. From then on no request waits for the store, and a
// probe lets requests through again.
func TestBreaker(t *testing.T) {
	r := startRelay(t)
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		reconnect := c.behind(r, "us")
		n := c.start("us/n1",
			documents.Parse(t, 1, alone,
				"name: minute, limit: 100, window: 1m, on_store_failure: deny"))
		if d := n.check(t, request("a")); !d.Allowed || n.limiter.Queue().OutOfReach()[store.Whole] {
			t.Fatalf("the store is there: %+v", d)
		}
		r.lead("")
		for i := range 3 {
			begun := time.Now()
			if d := n.check(t, request("a")); d.Reason != admit.StoreFailure ||
				time.Since(begun) != 0 {
				t.Errorf("request %d, after %v: %+v", i, time.Since(begun), d)
			}
			if !n.limiter.Queue().OutOfReach()[store.Whole] || n.limiter.Queue().Load().Queued > 0 {
				t.Errorf("request %d: the breaker is not tripped", i)
			}
		}
		time.Sleep(time.Second) // in which the store is tried many times
		if d := n.check(t, request("a")); d.Reason != admit.StoreFailure ||
			!n.limiter.Queue().OutOfReach()[store.Whole] {
			t.Errorf("no probe was answered: %+v", d)
		}
		reconnect()
		c.within(2*time.Second, "a probe to be answered",
			func() bool { return !n.limiter.Queue().OutOfReach()[store.Whole] })
		if d := n.check(t, request("a")); !d.Allowed || d.Remaining != 98 {
			t.Errorf("the store is back: %+v", d)
		}
	})
}
