package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/memory/journal"
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

// World is a running world.
type World struct {
	Network *network.Network
	Policy  *policy.Document // the document of the nodes
	config  Config
	dir     string
	nodes   map[string]*region.Node
	servers []*servers.Server

	storesMu sync.Mutex // held while a store ends or starts
	gone     map[int]bool
	starting sync.WaitGroup // stores that are gone and will be started again
	ending   chan struct{}  // closed when the world ends
}

const (
	peerPort   = 8082
	gossipPort = 7946
	// storeTimeout is long because an embedded Redis on a busy machine is slow, which the demo is
	// not about.
	storeTimeout = 2 * time.Second
)

// Start builds a world and waits until every region has heard every other.
func Start(ctx context.Context, c Config) (*World, error) {
	w := &World{Network: network.New(), config: c, nodes: map[string]*region.Node{},
		gone: map[int]bool{}, ending: make(chan struct{})}
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *World) start(ctx context.Context) error {
	var err error
	if w.Policy, err = w.config.parsed(); err != nil {
		return err
	}
	if w.dir, err = os.MkdirTemp("", "quotad-demo-"); err != nil {
		return err
	}
	for _, r := range w.Policy.Regions {
		w.Network.Host(r.Name)
	}
	w.Network.SetDelayAll(w.config.RoundTrip / 2)
	for _, r := range w.Policy.Regions {
		if err := w.startRegion(ctx, r.Name); err != nil {
			return fmt.Errorf("start region %s: %w", r.Name, err)
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
	var c region.Config
	defer func() {
		if w.nodes[name] == nil {
			closeAll(c)
		}
	}()
	c = region.Config{Region: name, Node: "n1", Nodes: 1, Policy: w.Policy, Bootstrap: true,
		Exchange: w.config.Exchange, Log: w.config.Log}
	if c.Store, err = store.Connect(store.Options{URL: server.URL, Timeout: storeTimeout,
		Now: server.Now}); err != nil {
		return err
	}
	if c.Journal, err = journal.Open(filepath.Join(w.dir, name, "journal.db"),
		journal.Options{Region: name, Node: "n1"}); err != nil {
		return err
	}
	host := w.Network.Host(name)
	if c.PeerListener, err = host.Listen(peerPort); err != nil {
		return err
	}
	if c.Packets, err = host.ListenPacket(gossipPort); err != nil {
		return err
	}
	if c.Streams, err = host.Listen(gossipPort); err != nil {
		return err
	}
	c.PeerAdvertise = netip.AddrPortFrom(host.IP(), peerPort).String()
	c.Advertise = w.address(name)
	c.Dial = host.DialContext
	c.Seeds = []string{w.seed()}
	n, err := region.Start(ctx, c)
	if err == nil {
		w.nodes[name] = n
	}
	return err
}

// closeAll closes the parts of a node that could not be started.
func closeAll(c region.Config) {
	for _, part := range []io.Closer{c.PeerListener, c.Packets, c.Streams} {
		if part != nil {
			_ = part.Close() // the start has failed already
		}
	}
	if c.Journal != nil {
		_ = c.Journal.Close()
	}
	if c.Store != nil {
		_ = c.Store.Close()
	}
}

// seed is the gossip address of the first region.
func (w *World) seed() string { return w.address(w.Policy.Regions[0].Name).String() }

// address returns the address at which a region's host gossips.
func (w *World) address(name string) netip.AddrPort {
	return netip.AddrPortFrom(w.Network.Host(name).IP(), gossipPort)
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
		if w.met() {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("the regions did not find each other: %w", ctx.Err())
		}
	}
}

func (w *World) met() bool {
	for _, n := range w.nodes {
		s := n.Status()
		if len(s.Members) < len(w.nodes) || len(s.Peers) < len(w.nodes)-1 {
			return false
		}
		for _, p := range s.Peers {
			if p.Degraded {
				return false
			}
		}
	}
	return true
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
	if w.dir != "" {
		err = errors.Join(err, os.RemoveAll(w.dir))
	}
	return err
}
