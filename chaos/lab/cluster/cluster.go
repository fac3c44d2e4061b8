// Package cluster puts together nodes that run by themselves, with their goroutines, in one process:
// each on a host of its own in a network in memory, with a journal in a folder that they share. What
// they use as stores, and when they start and end, is for the caller to say.
package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/gossip"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// The ports of each host.
const (
	PeerPort   = 8082
	GossipPort = 7946
)

// Cluster is where nodes run. A node is named by its region and itself, such as "us/n1"; "us" alone
// stands for a node n1 on a host "us".
type Cluster struct {
	Network *network.Network
	Dir     string // of the journals
	Seed    string // the node whom all others ask for the way in
	Log     *slog.Logger
}

// New returns a cluster that has hosts for nodes of these names. The first is the seed.
func New(dir string, names ...string) *Cluster {
	c := &Cluster{Network: network.New(), Dir: dir, Seed: names[0], Log: slog.New(slog.DiscardHandler)}
	for _, name := range names {
		c.Network.Host(name)
	}
	return c
}

// split returns the parts of a node's name.
func split(name string) (region, node string) {
	region, node, whole := strings.Cut(name, "/")
	if !whole {
		node = "n1"
	}
	return region, node
}

// Journal returns the path of a node's journal.
func (c *Cluster) Journal(name string) string {
	region, node := split(name)
	return filepath.Join(c.Dir, region+"-"+node)
}

// Peer returns the address at which a node is called.
func (c *Cluster) Peer(name string) netip.AddrPort {
	return netip.AddrPortFrom(c.Network.Host(name).IP(), PeerPort)
}

// Gossip returns the address at which a node gossips.
func (c *Cluster) Gossip(name string) netip.AddrPort {
	return netip.AddrPortFrom(c.Network.Host(name).IP(), GossipPort)
}

// Config opens what a node needs besides its store, which it takes over: its journal, and its ports.
// The node is its region's only one, and may begin a store, unless the caller says otherwise.
func (c *Cluster) Config(name string, s *store.Store, d *policy.Document) (region.Config, error) {
	host := c.Network.Host(name)
	cfg := region.Config{Nodes: 1, Policy: d, Bootstrap: true, Store: s, Dial: host.DialContext,
		PeerAdvertise: c.Peer(name).String(), Advertise: c.Gossip(name),
		Seeds: []string{c.Gossip(c.Seed).String()}, Log: c.Log}
	cfg.Region, cfg.Node = split(name)
	var errs [4]error
	cfg.Journal, errs[0] = journal.Open(c.Journal(name),
		journal.Options{Region: cfg.Region, Node: cfg.Node})
	cfg.PeerListener, errs[1] = host.Listen(PeerPort)
	cfg.Packets, errs[2] = host.ListenPacket(GossipPort)
	cfg.Streams, errs[3] = host.Listen(GossipPort)
	err := errors.Join(errs[:]...)
	if err != nil {
		Discard(cfg)
	}
	return cfg, err
}

// Start starts a node. If that fails it closes what the node was given.
func Start(ctx context.Context, cfg region.Config) (*region.Node, error) {
	n, err := region.Start(ctx, cfg)
	if err != nil {
		Discard(cfg)
	}
	return n, err
}

// Join starts a member of the nodes' gossip that is not a node, on a host of its own. g says who it
// pretends to be, and what it tells.
func (c *Cluster) Join(name string, g gossip.Config) (*gossip.Gossip, error) {
	host := c.Network.Host(name)
	var errs [2]error
	g.Packets, errs[0] = host.ListenPacket(GossipPort)
	g.Streams, errs[1] = host.Listen(GossipPort)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	g.Dial, g.Advertise, g.Seeds = host.DialContext, c.Gossip(name), []string{c.Gossip(c.Seed).String()}
	return gossip.Start(g)
}

// Discard closes what a node was given that does not run. Some of it may be closed already, or was
// never opened.
func Discard(cfg region.Config) {
	if cfg.Store != nil {
		_ = cfg.Store.Close()
	}
	if cfg.Journal != nil {
		_ = cfg.Journal.Close()
	}
	for _, socket := range []io.Closer{cfg.PeerListener, cfg.Packets, cfg.Streams} {
		if socket != nil {
			_ = socket.Close()
		}
	}
}

// Met reports whether nodes see each other, and none is degraded towards a region of another.
func Met(nodes ...*region.Node) bool {
	regions := map[string]bool{}
	for _, n := range nodes {
		regions[n.Status().Region] = true
	}
	for _, n := range nodes {
		s := n.Status()
		if len(s.Members) < len(nodes) || len(s.Peers) < len(regions)-1 {
			return false
		}
		for _, p := range s.Peers {
			if regions[p.Region] && p.Degraded {
				return false
			}
		}
	}
	return true
}
