package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Config describes a fleet.
type Config struct {
	// Quotad is the path of the binary; empty: build it.
	Quotad string
	// Limits is the text of the limits document of all nodes. Its regions must have the names of
	// Regions.
	Limits  string
	Regions []RegionConfig
	// Settings are lines to add to every node file, such as "chaos: true".
	Settings []string
	// Lines has all traffic between nodes go over Fleet.Lines, which can cut and delay it. All
	// nodes then have chaos: true. Seed is the seed for the packets that the lines lose.
	Lines bool
	Seed  uint64
	// Net is the first byte of all addresses; 0: 127, which is loopback.
	Net byte
	// Unproven has Start not wait until the regions have heard from each other: the nodes are such
	// that they take nothing from each other.
	Unproven bool
}

// RegionConfig describes a region.
type RegionConfig struct {
	Name string
	// Nodes is the number of nodes that share its Redis, 1 to 200; 0: 1.
	Nodes int
	// RedisArgs are added to the command line of its Redis.
	RedisArgs []string
	// Clock gives it, instead of a redis-server, an embedded Redis in this process whose clock can
	// be moved.
	Clock bool
	// Replica gives its Redis a replica, and connects its nodes through a Proxy that leads to one
	// of the two.
	Replica bool
	// Disks gives the journal of each node a disk of its own that can be made to fail.
	Disks bool
	// Settings are lines to add to the node files of this region.
	Settings []string
}

// Fleet is a number of regions of real processes. Safe for concurrent use.
type Fleet struct {
	Regions []*Region
	Lines   *Lines // nil without Config.Lines

	quotad string
	limits string // path of the limits document
}

// Region is one region of a fleet.
type Region struct {
	Name  string
	Redis *Redis // nil with RegionConfig.Clock
	Clock *Clock // nil without RegionConfig.Clock
	Nodes []*Node
	// Replica is the replica of Redis. Way leads the nodes to one of the two. Both are nil without
	// RegionConfig.Replica.
	Replica *Redis
	Way     *Proxy
}

// The ports are quotad's default ports plus an offset. They are below the ports that systems use
// for outgoing connections.
const (
	lockPort   = 17777
	redisPort  = 16379
	httpPort   = 18080
	grpcPort   = 18081
	peerPort   = 18082
	adminPort  = 18083
	gossipPort = 17946
)

// Start starts a fleet and waits until every node serves and has heard from every other region.
func Start(ctx context.Context, scope Scope, c Config) (*Fleet, error) {
	f := &Fleet{quotad: c.Quotad}
	dir := scope.TempDir()
	if f.quotad == "" {
		var err error
		if f.quotad, err = Build(ctx, dir); err != nil {
			return nil, err
		}
	}
	f.limits = filepath.Join(dir, "limits.yaml")
	if err := f.WriteLimits(c.Limits); err != nil {
		return nil, err
	}
	block, err := reserve(scope)
	if err != nil {
		return nil, err
	}
	if c.Lines {
		f.Lines = startLines(scope, c.Seed)
	}
	for i, rc := range c.Regions {
		r, err := f.prepare(ctx, scope, rc, c, [3]byte{cmp.Or(c.Net, 127), block, byte(i)})
		if err != nil {
			return nil, fmt.Errorf("start region %s: %w", rc.Name, err)
		}
		f.Regions = append(f.Regions, r)
	}
	if err := f.each(func(n *Node) error { return n.begin(ctx) }); err != nil {
		return nil, err
	}
	if c.Unproven {
		return f, nil
	}
	return f, f.Meet(ctx)
}

// WriteLimits replaces the limits document of all nodes. They notice by themselves.
func (f *Fleet) WriteLimits(text string) error {
	// With a rename, no node reads half of it.
	if err := os.WriteFile(f.limits+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(f.limits+".new", f.limits)
}

// Region returns the region with a name, or nil.
func (f *Fleet) Region(name string) *Region {
	for _, r := range f.Regions {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// prepare starts a region's Redis and makes its nodes, which do not run yet. All their addresses
// begin with prefix.
func (f *Fleet) prepare(ctx context.Context, scope Scope, rc RegionConfig, c Config,
	prefix [3]byte) (*Region, error) {
	address := func(last byte, port uint16) string {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{prefix[0], prefix[1], prefix[2], last}),
			port).String()
	}
	r := &Region{Name: rc.Name}
	var err error
	store := ""
	switch {
	case rc.Clock:
		if r.Clock, err = startClock(scope); err != nil {
			return nil, err
		}
		store = r.Clock.URL
	default:
		if r.Redis, err = StartRedis(ctx, scope, RedisConfig{Address: address(1, redisPort),
			Args: rc.RedisArgs}); err != nil {
			return nil, err
		}
		store = r.Redis.URL
	}
	if rc.Replica {
		if err := r.copied(ctx, scope); err != nil {
			return nil, err
		}
		store = r.Way.URL
	}
	nodes := max(rc.Nodes, 1)
	for i := range nodes {
		last := byte(11 + i)
		n := &Node{Region: rc.Name, Name: fmt.Sprintf("n%d", i+1), HTTP: address(last, httpPort),
			GRPC: address(last, grpcPort), Admin: address(last, adminPort), Peer: address(last, peerPort), quotad: f.quotad}
		n.IP = netip.MustParseAddrPort(n.HTTP).Addr()
		n.name, n.dir = "quotad "+n.Region+"/"+n.Name, scope.TempDir()
		file := nodeFile{nodes: nodes, redis: store, limits: f.limits, peer: n.Peer,
			gossip: address(last, gossipPort),
			seed: netip.AddrPortFrom(netip.AddrFrom4([4]byte{prefix[0], prefix[1], 0, 11}),
				gossipPort).String(),
			settings: slices.Concat(c.Settings, rc.Settings)}
		if f.Lines != nil {
			if err := f.stand(n, &file); err != nil {
				return nil, err
			}
		}
		if rc.Disks {
			if n.Disk, err = newDisk(scope, n.dir); err != nil {
				return nil, err
			}
		}
		if err := n.configure(file); err != nil {
			return nil, err
		}
		scope.Cleanup(n.end)
		r.Nodes = append(r.Nodes, n)
	}
	return r, nil
}

// each calls do for all nodes concurrently.
func (f *Fleet) each(do func(*Node) error) error {
	var mu sync.Mutex
	var all sync.WaitGroup
	var errs []error
	for _, r := range f.Regions {
		for _, n := range r.Nodes {
			all.Go(func() {
				if err := do(n); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
				}
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// Meet waits until every running node has heard from every other region and is degraded towards
// none.
func (f *Fleet) Meet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return f.each(func(n *Node) error {
		if !n.Running() {
			return nil
		}
		return n.await(ctx, "in touch with all regions", func(ctx context.Context) error {
			s, err := n.Status(ctx)
			if err != nil {
				return err
			}
			return s.InTouch(len(f.Regions) - 1)
		})
	})
}

// reserve returns a second byte of 127.0.0.0/8 that no other fleet uses until the scope ends.
func reserve(scope Scope) (byte, error) {
	var last error
	for range 100 {
		block := byte(20 + rand.IntN(200))
		l, err := net.Listen("tcp",
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, block, 255, 254}), lockPort).String())
		if err == nil {
			scope.Cleanup(func() { _ = l.Close() })
			return block, nil
		}
		last = err
	}
	return 0, fmt.Errorf(
		"no addresses are free in 127.0.0.0/8: %w; on systems other than Linux give loopback aliases first", last)
}

// patience is the time that a node has to end.
const patience = 15 * time.Second
