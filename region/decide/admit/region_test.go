package admit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/peer"
)

// storeTimeout is virtual time, which stands still while a Redis is asked.
const storeTimeout = time.Second

// cluster is the limiters of one region's nodes in one bubble, each with what it works with. They
// share a Redis. Nodes are named "us/n1".
type cluster struct {
	t       *testing.T
	server  *servers.Server
	url     string
	twin    *lab.Twin   // in the place of the server
	ways    []*lab.Busy // to the server
	dir     string
	nodes   int
	running map[string]*running
}

// running is a limiter at work, and its node's journal.
type running struct {
	*Limiter
	name    string
	journal *journal.Journal
	end     func() error
}

// inBubble runs a test in virtual time on a region of so many nodes, none of them started. Its
// Redis is started outside of the bubble: waiting on its sockets must not stop the bubble's time.
// That time begins with a day, so a window of an hour has one cell for the whole test.
func inBubble(t *testing.T, nodes int, f func(t *testing.T, c *cluster)) {
	t.Helper()
	server := fixtures.Started(t)(servers.StartDriven(time.Now))
	c := &cluster{server: server, url: server.URL, dir: fixtures.Folder(t), nodes: nodes,
		running: map[string]*running{}}
	bubble.Test(t, func(t *testing.T) {
		c.t = t
		if suite.OnTwins() {
			c.twin = lab.NewTwin(now, "a")
		}
		t.Cleanup(c.close)
		f(t, c)
	})
}

// started runs a test on nodes that have all started under one document.
func started(t *testing.T, d *policy.Document, nodes []string, f func(t *testing.T, c *cluster)) {
	t.Helper()
	inBubble(t, len(nodes), func(t *testing.T, c *cluster) {
		for _, name := range nodes {
			c.start(name, d)
		}
		f(t, c)
	})
}

func (c *cluster) close() {
	var err error
	for _, n := range c.running {
		err = errors.Join(err, n.end())
	}
	if err != nil {
		c.t.Error(err)
	}
	// go-redis looks for a lost server once a second, and only then sees that it was closed.
	time.Sleep(time.Second)
}

// connect returns a way to the region's store.
func (c *cluster) connect() *store.Store {
	c.t.Helper()
	if c.twin != nil {
		s, _ := c.twin.ConnectWithin(storeTimeout, time.Now)
		return s
	}
	// Its sockets wait in real time, of which a busy machine needs more.
	parts, err := store.Redis(store.Options{URL: c.url, Timeout: suite.Patience, Now: c.server.Now})
	suite.Must(c.t, err)
	parts.Deadline = storeTimeout
	way := &lab.Busy{Servers: parts.Servers}
	c.ways, parts.Servers = append(c.ways, way), way
	return store.New(parts)
}

// setDown has the nodes not reach the region's store, or reach it again.
func (c *cluster) setDown(down bool) {
	if c.twin != nil {
		c.twin.SetDown(down)
	}
	for _, way := range c.ways {
		way.Stop(down)
	}
}

// start starts what a node has beside its peers: its limiter, and what that works with.
func (c *cluster) start(name string, d *policy.Document) *running {
	c.t.Helper()
	region, node, _ := strings.Cut(name, "/")
	kept, err := journal.Open(filepath.Join(c.dir, node), journal.Options{Region: region,
		Node: node})
	suite.Must(c.t, err)
	closed, peers := make(chan struct{}), peer.NewClient(nil, nil) // it hears of no peer's address
	s := c.connect()
	l, err := wired(Config{Region: region, Node: node, Nodes: c.nodes, Store: s, Journal: kept,
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Closed: closed}, d, peers)
	if err == nil {
		err = l.tenure.Open(c.t.Context())
	}
	suite.Must(c.t, err)
	n := &running{Limiter: l, name: name, journal: kept}
	stop := n.run()
	n.end = sync.OnceValue(func() error {
		close(closed)
		stop()
		return errors.Join(peers.Close(), kept.Close(), s.Close())
	})
	c.running[name] = n
	return n
}

// run begins what a node does until stop is called, which waits for the end.
func (n *running) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, each := range []func(context.Context){n.Run, n.rights.Run, n.tenure.Watch,
		n.tenure.KeepTime, n.tenure.TryRefused, n.keepBooks} {
		all.Go(func() { each(ctx) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// keepBooks writes checkpoints of use, has the store charged with what was admitted without it, and
// drops what no longer counts, as a node does.
func (n *running) keepBooks(ctx context.Context) {
	settles, writes := time.NewTicker(200*time.Millisecond), time.NewTicker(time.Second)
	forgets := time.NewTicker(10 * time.Second)
	defer settles.Stop()
	defer writes.Stop()
	defer forgets.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-settles.C:
			n.local.Book(ctx)
		case <-writes.C:
			n.rights.Checkpoint(ctx, false)
		case at := <-forgets.C:
			n.rights.Forget(at)
			n.Forget(at)
			_, _, _ = n.journal.Prune(min(n.store.Surely(), quantity.StoreTime(at.UnixMicro())))
		}
	}
}

// stop ends a node, which may be started again.
func (c *cluster) stop(name string) {
	c.t.Helper()
	suite.Must(c.t, c.running[name].end())
	delete(c.running, name)
}

// within waits until a condition holds, which is asked every 20 ms.
func (c *cluster) within(limit time.Duration, what string, holds func() bool) {
	c.t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > limit {
			c.t.Fatalf("waited %v for %s", limit, what)
		}
	}
}

// nextCell sleeps until a tenth into the next cell of a length.
func nextCell(window time.Duration) {
	time.Sleep(time.Until(time.Now().Truncate(window).Add(window + window/10)))
}

// check makes a request that must be decided.
func (n *running) check(t *testing.T, q Request) Decision {
	t.Helper()
	d, err := n.Check(t.Context(), q)
	if err != nil {
		t.Fatalf("%s: %v", n.name, err)
	}
	return d
}

// inspect returns what the store says of a bucket.
func (n *running) inspect(t *testing.T, limit string, q Request) algorithms.State {
	t.Helper()
	r := n.tenure.Rules()
	_, b, err := r.Locate(limit, q.Domain, q.Descriptors)
	suite.Must(t, err)
	found, err := n.store.Inspect(t.Context(), algorithms.Inspect{
		Fence: algorithms.Fence{Epoch: r.Epoch}, Target: r.Target(b, 0)})
	if err != nil {
		t.Fatalf("%s: %v", n.name, err)
	}
	return found.State
}

// used returns what counts against a limit.
func (n *running) used(t *testing.T, limit string, q Request) quantity.Units {
	t.Helper()
	return n.inspect(t, limit, q).Used
}

// charged makes a request that must be admitted, and returns its receipt.
func (n *running) charged(t *testing.T, q Request) string {
	t.Helper()
	d := n.check(t, q)
	if !d.Allowed || !strings.HasPrefix(d.Receipt, "qr1_") {
		t.Fatalf("%s: %+v, want a receipt", n.name, d)
	}
	return d.Receipt
}

// refunds fails the test unless a receipt can be refunded with this outcome, limit by limit.
func (n *running) refunds(t *testing.T, receipt string, repeated bool, want ...receipts.SettledCharge) {
	t.Helper()
	got, err := n.receipts.Settle(t.Context(), receipt, 0)
	if err != nil || got.Repeated != repeated || !slices.Equal(got.Charges, want) {
		t.Errorf("%s: refunded %+v, %v; want %+v, repeated %v", n.name, got, err, want, repeated)
	}
}

// cost is a request of so many units that asks for a receipt.
func cost(account string, units quantity.Units) Request {
	q := request(account)
	q.Cost, q.Receipt = units, true
	return q
}

// limitOf is a limit of a kind, named by it.
func limitOf(kind algorithms.Kind, units int, fields string) string {
	return fmt.Sprintf("name: %s, algorithm: %s, limit: %d, window: 10s%s", nameOf(kind), kind,
		units, fields)
}

// nameOf is that name.
func nameOf(kind algorithms.Kind) string { return strings.ReplaceAll(string(kind), "_", "-") }
