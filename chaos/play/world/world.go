package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/cluster"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/memory/store"
)

// Region is a region of a world.
type Region struct {
	Name   string
	Weight int64
}

// Config says what a world is made of.
type Config struct {
	Regions []Region
	// Limit is that of the only limit, named "demo", in domain "demo", with the key "account".
	Limit     int64
	Window    time.Duration
	Algorithm string
	RoundTrip time.Duration // between any two regions
	// Inflate multiplies Limit in the nodes' document, as a faulty build might; 0: 1.
	Inflate  int64
	Exchange exchange.Options
	Log      *slog.Logger
	// Redis starts a region's Redis.
	Redis func(context.Context) (*servers.Server, error)
	// Document, if it is not nil, is the limits document of the nodes, in place of the one that
	// Regions, Limit, Window, Algorithm and Inflate make.
	Document *policy.Document
}

// World is a running world: a node for each region, on a host of the region's name.
type World struct {
	*cluster.Cluster
	Policy  *policy.Document // the document of the nodes
	config  Config
	nodes   map[string]*region.Node
	servers []*servers.Server

	storesMu sync.Mutex // held while a store ends or starts
	gone     map[int]bool
	starting sync.WaitGroup // stores that are gone and will be started again
	ending   chan struct{}  // closed when the world ends
}

// storeTimeout is long because an embedded Redis on a busy machine is slow, which the demo is not
// about.
const storeTimeout = 2 * time.Second

// Start builds a world and waits until every region has heard every other.
func Start(ctx context.Context, c Config) (*World, error) {
	d, err := c.parsed()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "quotad-demo-")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range d.Regions {
		names = append(names, r.Name)
	}
	w := &World{Cluster: cluster.New(dir, names...), Policy: d, config: c,
		nodes: map[string]*region.Node{}, gone: map[int]bool{}, ending: make(chan struct{})}
	w.Log = c.Log
	if err := w.start(ctx, names); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *World) start(ctx context.Context, names []string) error {
	w.Network.SetDelayAll(w.config.RoundTrip / 2)
	for _, name := range names {
		if err := w.startRegion(ctx, name); err != nil {
			return fmt.Errorf("start region %s: %w", name, err)
		}
	}
	return w.meet(ctx)
}

// parsed returns the limits document of the nodes.
func (c Config) parsed() (*policy.Document, error) {
	if c.Document != nil {
		return c.Document, nil
	}
	return policy.Parse("demo.yaml", []byte(c.document()))
}

// document writes the limits document of the demo.
func (c Config) document() string {
	var b strings.Builder
	b.WriteString("version: 1\nregions:\n")
	for _, r := range c.Regions {
		fmt.Fprintf(&b, "  %s: {weight: %d}\n", r.Name, r.Weight)
	}
	fmt.Fprintf(&b, "limits:\n  - name: demo\n    domain: demo\n    key: [account]\n    algorithm: %s\n    limit: %d\n    window: %s\n    on_store_failure: deny\n",
		c.Algorithm, c.Limit*max(c.Inflate, 1), c.Window)
	return b.String()
}

func (w *World) startRegion(ctx context.Context, name string) error {
	server, err := w.config.Redis(ctx)
	if err != nil {
		return err
	}
	w.servers = append(w.servers, server)
	way, err := store.Connect(store.Options{URL: server.URL, Timeout: storeTimeout, Now: server.Now})
	if err != nil {
		return err
	}
	c, err := w.Config(name, way, w.Policy)
	if err != nil {
		return err
	}
	c.Exchange = w.config.Exchange
	n, err := cluster.Start(ctx, c)
	if err == nil {
		w.nodes[name] = n
	}
	return err
}

// KillStore ends a region's embedded Redis, with its data, and starts an empty one at its address
// after d. It returns at once; the error is that of the end.
func (w *World) KillStore(region string, d time.Duration) error {
	i := slices.IndexFunc(w.Policy.Regions, func(r policy.Region) bool { return r.Name == region })
	if i < 0 || i >= len(w.servers) {
		return fmt.Errorf("there is no region %q here", region)
	}
	w.storesMu.Lock()
	defer w.storesMu.Unlock()
	if w.gone[i] {
		return fmt.Errorf("the Redis of %s is gone already", region)
	}
	w.gone[i] = true
	at := strings.TrimPrefix(w.servers[i].URL, "redis://")
	if err := w.servers[i].Close(); err != nil {
		return err
	}
	w.starting.Go(func() {
		select {
		case <-time.After(d):
		case <-w.ending:
			return
		}
		w.storesMu.Lock()
		defer w.storesMu.Unlock()
		s, err := servers.StartEmbeddedAt(at, "")
		if err != nil {
			w.config.Log.Error("the embedded Redis cannot be started again", "region", region, "err", err)
			return
		}
		w.servers[i], w.gone[i] = s, false
	})
	return nil
}

// Node returns the node of a region.
func (w *World) Node(name string) *region.Node { return w.nodes[name] }

// meet waits until every region has heard every other.
func (w *World) meet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		if cluster.Met(slices.Collect(maps.Values(w.nodes))...) {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("the regions did not find each other: %w", ctx.Err())
		}
	}
}

// Close ends all nodes, servers and the network.
func (w *World) Close() error {
	var err error
	close(w.ending)
	w.starting.Wait()
	for _, n := range w.nodes {
		err = errors.Join(err, n.Close())
	}
	err = errors.Join(err, w.Network.Close())
	for _, s := range w.servers {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, os.RemoveAll(w.Dir))
}
