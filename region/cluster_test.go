package region_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	labcluster "github.com/quotad/quotad/chaos/lab/cluster"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/rights"
)

const (
	oneWay = 40 * time.Millisecond // between regions
	// storeTimeout is virtual time in a bubble, where it stands still during a call of a Redis.
	storeTimeout = time.Second
	// startsWithin is how long a node may take to start.
	startsWithin = 30 * time.Second
)

// cluster is nodes of several regions in one bubble. Nodes are named "us/n1"; those of one region
// share a Redis.
type cluster struct {
	*labcluster.Cluster
	t       *testing.T
	servers map[string]*servers.Server // by region
	twins   map[string]*lab.Twin       // by region: used instead of its server
	sizes   map[string]int             // nodes by region
	running map[string]*running
	given   map[string]*policy.Document // what nodes were last started with

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
	*region.Node
	name    string
	config  region.Config
	journal *journal.Journal
	tenure  *tenure.Tenure
	rights  *rights.Engine
	limiter *admit.Limiter
}

// newCluster returns a cluster of nodes of these names, none of them started.
func newCluster(t *testing.T, dir string, nodes ...string) *cluster {
	c := &cluster{Cluster: labcluster.New(dir, nodes...), t: t, servers: map[string]*servers.Server{},
		twins: map[string]*lab.Twin{}, sizes: map[string]int{}, running: map[string]*running{}, given: map[string]*policy.Document{},
		bootstrap: true, deadline: storeTimeout}
	for _, name := range nodes {
		region, _, _ := strings.Cut(name, "/")
		c.sizes[region]++
	}
	return c
}

// inBubble runs a test in virtual time on a cluster of the given nodes, none of them started. Each
// region's Redis is started outside of the bubble: waiting on its sockets must not stop the
// bubble's time. That time begins with a day, so a window of an hour has one cell for the whole
// test.
func inBubble(t *testing.T, nodes []string, f func(t *testing.T, c *cluster)) {
	t.Helper()
	dir, all := fixtures.Folder(t), map[string]*servers.Server{}
	for _, name := range nodes {
		if region, _, _ := strings.Cut(name, "/"); all[region] == nil {
			all[region] = fixtures.Started(t)(servers.StartDriven(time.Now))
		}
	}
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nodes...)
		c.servers = all
		for region := range all {
			if suite.OnTwins() {
				c.onTwin(region)
			}
		}
		c.Network.SetDelayAll(oneWay)
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

// oneNode is started with us/n1 alone.
func oneNode(t *testing.T, d *policy.Document, f func(t *testing.T, c *cluster, n *running)) {
	t.Helper()
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) { f(t, c, c.running["us/n1"]) })
}

// twoRegions is started with one node of us, and one of eu.
func twoRegions(t *testing.T, d *policy.Document, f func(t *testing.T, c *cluster, us, eu *running)) {
	t.Helper()
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		f(t, c, c.running["us/n1"], c.running["eu/n1"])
	})
}

// mates runs a test on the nodes of one region, which have found each other. A window of the limit
// long has just begun, which has so many units.
func mates(t *testing.T, units int, nodes []string, f func(t *testing.T, c *cluster)) {
	t.Helper()
	d := documents.Parse(t, 1, alone, long(algorithms.FixedWindow, units, ""))
	started(t, d, nodes, func(t *testing.T, c *cluster) {
		nextCell(10 * time.Minute)
		f(t, c)
	})
}

// twoMates is mates of two nodes.
func twoMates(t *testing.T, units int, f func(t *testing.T, c *cluster, n1, n2 *running)) {
	t.Helper()
	mates(t, units, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		f(t, c, c.running["us/n1"], c.running["us/n2"])
	})
}

func (c *cluster) close() {
	var err error
	for _, n := range c.running {
		err = errors.Join(err, n.Close())
	}
	if err = errors.Join(err, c.Network.Close()); err != nil {
		c.t.Error(err)
	}
	// go-redis looks for a lost server once a second, and only then sees that it was closed.
	time.Sleep(time.Second)
}

// config makes what a node needs, with the changes of a test; it is opened anew at each call.
func (c *cluster) config(name string, d *policy.Document, changes ...func(*region.Config)) region.Config {
	c.t.Helper()
	of, _, _ := strings.Cut(name, "/")
	var s *store.Store
	var err error
	if twin := c.twins[of]; twin != nil {
		s, _ = twin.ConnectWithin(c.deadline, time.Now)
	} else if s, err = c.connect(c.servers[of]); err != nil {
		c.t.Fatal(err)
	}
	cfg, err := c.Config(name, s, d)
	suite.Must(c.t, err)
	cfg.Nodes, cfg.Bootstrap, cfg.Alone, cfg.Unproven = c.sizes[of], c.bootstrap, c.alone, c.unproven
	cfg.Adopted = func(_, d *policy.Document, from string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.adopted = append(c.adopted, fmt.Sprintf("%s: %d from %s", name, d.Version, from))
	}
	for _, change := range changes {
		change(&cfg)
	}
	return cfg
}

// clockAhead has a node work by a clock that is ahead, and its store as well if that is a twin.
func (c *cluster) clockAhead(ahead func() time.Duration) func(*region.Config) {
	return func(cfg *region.Config) {
		cfg.Now = func() time.Time { return time.Now().Add(ahead()) }
		cfg.Store, _ = c.twins[cfg.Region].ConnectWithin(c.deadline, cfg.Now)
	}
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

// begin starts a node of what was made for it, which the cluster does not know of.
func (c *cluster) begin(cfg region.Config) (*running, error) {
	within := startsWithin
	if c.real {
		within = suite.Patience
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), within)
	defer cancel()
	n, err := labcluster.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r := &running{Node: n, name: cfg.Region + "/" + cfg.Node, config: cfg, journal: cfg.Journal}
	r.tenure, r.rights, r.limiter = n.Wings()
	return r, nil
}

func (c *cluster) tryStart(name string, d *policy.Document, changes ...func(*region.Config)) (*running, error) {
	c.t.Helper()
	n, err := c.begin(c.config(name, d, changes...))
	if err == nil {
		c.running[name], c.given[name] = n, d
	}
	return n, err
}

// again starts a node that was stopped, with the document that it was started with before.
func (c *cluster) again(name string) *running {
	c.t.Helper()
	return c.start(name, c.given[name])
}

func (c *cluster) start(name string, d *policy.Document, changes ...func(*region.Config)) *running {
	c.t.Helper()
	n, err := c.tryStart(name, d, changes...)
	suite.Must(c.t, err)
	return n
}

// stop ends a node, which may be started again.
func (c *cluster) stop(name string) {
	c.t.Helper()
	suite.Must(c.t, c.running[name].Close())
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
		var all []*region.Node
		for _, n := range c.running {
			all = append(all, n.Node)
		}
		return labcluster.Met(all...)
	})
}

// redis runs a command on a region's Redis, as an operator would.
func (c *cluster) redis(region string, f func(ctx context.Context, client *redis.Client) error) {
	c.t.Helper()
	o, err := redis.ParseURL(c.servers[region].URL)
	suite.Must(c.t, err)
	client := redis.NewClient(o)
	suite.Must(c.t, errors.Join(f(c.t.Context(), client), client.Close()))
}

// onRedis has a region's nodes that start from now on use an embedded Redis in any case: for tests
// of connections and of what a twin has not.
func (c *cluster) onRedis(region string) { delete(c.twins, region) }

// onTwin has a region's nodes that start from now on use a twin in any case, which a test can take
// out of reach and bring back at once.
func (c *cluster) onTwin(region string) *lab.Twin {
	c.twins[region] = twinAhead(region, 0)
	return c.twins[region]
}

// twinOf returns a Redis on a machine whose clock is ahead.
func twinOf(name string, ahead func() time.Duration) *lab.Twin {
	return lab.NewTwin(func() quantity.StoreTime {
		return quantity.StoreTime(time.Now().Add(ahead()).UnixMicro())
	}, name)
}

// twinAhead is twinOf with a clock that is always as far ahead.
func twinAhead(name string, ahead time.Duration) *lab.Twin {
	return twinOf(name, func() time.Duration { return ahead })
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
	c.redis(region, func(ctx context.Context, client *redis.Client) error {
		return client.FlushAll(ctx).Err()
	})
}

// nextCell sleeps until a tenth into the next cell of a length.
func nextCell(window time.Duration) {
	time.Sleep(time.Until(time.Now().Truncate(window).Add(window + window/10)))
}
