package region

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

const (
	oneWay     = 40 * time.Millisecond // between regions
	peerPort   = 8082
	gossipPort = 7946
	// storeTimeout is virtual time in a bubble, where it stands still during a call of a Redis.
	storeTimeout = time.Second
)

// cluster is nodes of several regions in one bubble. Nodes are named "us/n1"; those of one region
// share a Redis, and each has a host of its own name in the network.
type cluster struct {
	t       *testing.T
	network *network.Network
	servers map[string]*servers.Server // by region
	twins   map[string]*lab.Twin       // by region: used instead of its server
	dir     string
	sizes   map[string]int // nodes by region
	seed    string
	running map[string]*running

	bootstrap bool          // what nodes are told at their start
	alone     bool          // and whether that holds although nobody can be asked
	unproven  bool          // and whether anybody could pass for another node
	deadline  time.Duration // of their stores
	real      bool          // it runs in real time

	mu      sync.Mutex
	adopted []string // documents that came from elsewhere: the node, the version, and from where
}

// running is a node and what it was made of.
type running struct {
	*Node
	name    string
	journal *journal.Journal
}

// inBubble runs a test in virtual time on a cluster of the given nodes, none of them started. Each
// region's Redis is started outside of the bubble: waiting on its sockets must not stop the
// bubble's time. That time begins with a day, so a window of an hour has one cell for the whole
// test.
func inBubble(t *testing.T, nodes []string, f func(t *testing.T, c *cluster)) {
	t.Helper()
	c := &cluster{dir: fixtures.Folder(t), servers: map[string]*servers.Server{},
		twins: map[string]*lab.Twin{}, sizes: map[string]int{}, running: map[string]*running{},
		bootstrap: true, deadline: storeTimeout}
	for _, name := range nodes {
		region, _, _ := strings.Cut(name, "/")
		if c.sizes[region]++; c.sizes[region] > 1 {
			continue
		}
		c.servers[region] = fixtures.Started(t)(servers.StartDriven(time.Now))
	}
	bubble.Test(t, func(t *testing.T) {
		c.t, c.network = t, network.New()
		for region := range c.servers {
			if suite.OnTwins() {
				c.twins[region] = lab.NewTwin(func() quantity.StoreTime {
					return quantity.StoreTime(time.Now().UnixMicro())
				}, region)
			}
		}
		for _, name := range nodes {
			c.network.Host(name)
		}
		c.network.SetDelayAll(oneWay)
		c.seed = c.gossipAddress(nodes[0]).String()
		t.Cleanup(c.close)
		f(t, c)
	})
}

// started runs a test on a cluster whose nodes have all started under one document, and found each
// other.
func started(t *testing.T, d *policy.Document, nodes []string, f func(t *testing.T, c *cluster)) {
	t.Helper()
	inBubble(t, nodes, func(t *testing.T, c *cluster) {
		for _, name := range nodes {
			c.start(name, d)
		}
		c.meet()
		f(t, c)
	})
}

func (c *cluster) close() {
	var err error
	for _, n := range c.running {
		err = errors.Join(err, n.Close())
	}
	if err = errors.Join(err, c.network.Close()); err != nil {
		c.t.Error(err)
	}
	// go-redis looks for a lost server once a second, and only then sees that it was closed.
	time.Sleep(time.Second)
}

func (c *cluster) gossipAddress(name string) netip.AddrPort {
	return netip.AddrPortFrom(c.network.Host(name).IP(), gossipPort)
}

// config makes what a node needs; it is opened anew at each call.
func (c *cluster) config(name string, d *policy.Document) Config {
	c.t.Helper()
	region, node, _ := strings.Cut(name, "/")
	server, host := c.servers[region], c.network.Host(name)
	var errs [5]error
	cfg := Config{Region: region, Node: node, Nodes: c.sizes[region], Policy: d,
		Bootstrap: c.bootstrap, Alone: c.alone, Unproven: c.unproven,
		Adopted: func(_, d *policy.Document, from string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.adopted = append(c.adopted, fmt.Sprintf("%s: %d from %s", name, d.Version, from))
		},
		PeerAdvertise: netip.AddrPortFrom(host.IP(), peerPort).String(),
		Advertise:     c.gossipAddress(name),
		Seeds:         []string{c.seed}, Dial: host.DialContext, Log: slog.New(slog.DiscardHandler)}
	if twin := c.twins[region]; twin != nil {
		cfg.Store, _ = twin.ConnectWithin(c.deadline, time.Now)
	} else {
		cfg.Store, errs[0] = c.connect(server)
	}
	cfg.Journal, errs[1] = journal.Open(filepath.Join(c.dir, region+"-"+node),
		journal.Options{Region: region, Node: node})
	cfg.PeerListener, errs[2] = host.Listen(peerPort)
	cfg.Packets, errs[3] = host.ListenPacket(gossipPort)
	cfg.Streams, errs[4] = host.Listen(gossipPort)
	if err := errors.Join(errs[:]...); err != nil {
		c.t.Fatal(err)
	}
	return cfg
}

// connect returns a way to an embedded Redis. In a bubble its sockets wait in real time, so a busy
// machine has a minute for what by the bubble's time is over at once.
func (c *cluster) connect(server *servers.Server) (*store.Store, error) {
	waits := suite.Patience
	if c.real {
		waits = c.deadline
	}
	parts, err := store.Redis(store.Options{URL: server.URL, Timeout: waits, Now: server.Now})
	if err != nil {
		return nil, err
	}
	parts.Deadline = c.deadline
	return store.New(parts), nil
}

// tryStart starts a node. If that fails it closes what the node was given, and returns the reason.
func (c *cluster) tryStart(name string, d *policy.Document) (*running, error) {
	c.t.Helper()
	cfg := c.config(name, d)
	n, err := Start(c.t.Context(), cfg)
	if err != nil {
		// Some of it may be closed already.
		_ = errors.Join(cfg.Store.Close(), cfg.Journal.Close(), cfg.PeerListener.Close(),
			cfg.Packets.Close(), cfg.Streams.Close())
		return nil, err
	}
	c.running[name] = &running{Node: n, name: name, journal: cfg.Journal}
	return c.running[name], nil
}

func (c *cluster) start(name string, d *policy.Document) *running {
	c.t.Helper()
	n, err := c.tryStart(name, d)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// stop ends a node, which may be started again.
func (c *cluster) stop(name string) {
	c.t.Helper()
	if err := c.running[name].Close(); err != nil {
		c.t.Fatal(err)
	}
	delete(c.running, name)
}

// within waits until a condition holds, which is asked every 20 ms. The limit is of virtual time.
func (c *cluster) within(limit time.Duration, what string, holds func() bool) {
	c.t.Helper()
	if c.real {
		suite.Eventually(c.t, what, holds)
		return
	}
	for begun := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > limit {
			c.t.Fatalf("waited %v for %s", limit, what)
		}
	}
}

// meet waits until all nodes see each other and no region is degraded towards another.
func (c *cluster) meet() {
	c.t.Helper()
	c.within(15*time.Second, "the nodes to find each other", func() bool {
		for _, n := range c.running {
			s := n.Status()
			if len(s.Members) < len(c.running) {
				return false
			}
			for _, p := range s.Peers {
				if c.sizes[p.Region] > 0 && p.Degraded {
					return false
				}
			}
		}
		return true
	})
}

// redis runs a command on a region's Redis, as an operator would.
func (c *cluster) redis(region string, f func(ctx context.Context, client *redis.Client) error) {
	c.t.Helper()
	o, err := redis.ParseURL(c.servers[region].URL)
	if err != nil {
		c.t.Fatal(err)
	}
	client := redis.NewClient(o)
	if err := errors.Join(f(c.t.Context(), client), client.Close()); err != nil {
		c.t.Fatal(err)
	}
}

// onRedis has a region's nodes that start from now on use an embedded Redis in any case: for tests
// of connections and of what a twin has not.
func (c *cluster) onRedis(region string) { delete(c.twins, region) }

// onTwin has a region's nodes that start from now on use a twin in any case, which a test can take
// out of reach and bring back at once.
func (c *cluster) onTwin(region string) *lab.Twin {
	twin := lab.NewTwin(func() quantity.StoreTime {
		return quantity.StoreTime(time.Now().UnixMicro())
	}, region)
	c.twins[region] = twin
	return twin
}

// loseStore ends a region's store.
func (c *cluster) loseStore(region string) {
	c.t.Helper()
	if twin := c.twins[region]; twin != nil {
		twin.SetDown(true)
	} else if err := c.servers[region].Close(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) flushAll(region string) {
	c.t.Helper()
	if twin := c.twins[region]; twin != nil {
		twin.Flush()
		return
	}
	c.redis(region, func(ctx context.Context,
		client *redis.Client) error {
		return client.FlushAll(ctx).Err()
	})
}

// nextCell sleeps until a tenth into the next cell of a length.
func nextCell(window time.Duration) {
	time.Sleep(time.Until(time.Now().Truncate(window).Add(window + window/10)))
}

// check makes a request that must be decided.
func (n *running) check(t *testing.T, q admit.Request) admit.Decision {
	t.Helper()
	d, err := n.Check(t.Context(), q)
	if err != nil {
		t.Fatalf("%s: %v", n.name, err)
	}
	return d
}

// drain makes requests of one unit until one is denied, and returns how many were admitted and the
// denial.
func (n *running) drain(t *testing.T, q admit.Request, most int) (admitted int,
	last admit.Decision) {
	t.Helper()
	for range most {
		if last = n.check(t, q); !last.Allowed {
			return admitted, last
		}
		admitted++
	}
	t.Fatalf("%s: all of %d requests were admitted", n.name, most)
	return 0, last
}

// load makes units of demand every 10 ms for a while and returns what was admitted, by cell.
func (n *running) load(t *testing.T, q admit.Request, units int,
	d time.Duration) map[int64]quantity.Units {
	t.Helper()
	admitted := map[int64]quantity.Units{}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for range units {
			if d := n.check(t, q); d.Allowed {
				admitted[int64(d.Cell)] += q.Cost
			}
		}
	}
	return admitted
}

// counter reads one of the node's running totals.
func (n *running) counter(t *testing.T, name string) quantity.Units {
	t.Helper()
	for _, c := range n.Status().Counters() {
		if c.Name == name {
			return quantity.Units(c.Value)
		}
	}
	t.Fatalf("no counter %q", name)
	return 0
}
