package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Config says what a fleet is made of.
type Config struct {
	// Quotad is the path of the binary; empty: it is built.
	Quotad string
	// Limits is the text of the limits document of all nodes, whose regions must
	// have the names of Regions.
	Limits  string
	Regions []RegionConfig
	// Settings are lines added to every node file, such as "chaos: true".
	Settings []string
	// Lines has all that goes between nodes go over Fleet.Lines, which can be cut
	// and slowed down. It makes every node one with chaos: true. Seed is that of
	// what the lines lose.
	Lines bool
	Seed  uint64
}

// RegionConfig says what a region is made of.
type RegionConfig struct {
	Name string
	// Nodes is how many nodes share its Redis, 1 to 200; 0 stands for 1.
	Nodes int
	// RedisArgs are added to the command line of its Redis.
	RedisArgs []string
	// Clock gives it an embedded Redis in this process, whose clock can be moved,
	// in place of a redis-server.
	Clock bool
	// Replica gives its Redis a copy, and its nodes a way to one of the two.
	Replica bool
	// Disks gives the journal of each node a disk of its own, which can fail.
	Disks bool
}

// Fleet is some regions made of real processes. Safe for concurrent use.
type Fleet struct {
	Regions []*Region
	Lines   *Lines // nil without Config.Lines

	quotad string
	limits string // path
}

// Region is one of them.
type Region struct {
	Name  string
	Redis *Redis // nil with RegionConfig.Clock
	Clock *Clock // nil without
	Nodes []*Node
	// Replica copies Redis, and Way is how the nodes reach one of them; nil
	// without RegionConfig.Replica.
	Replica *Redis
	Way     *Proxy
}

// The ports are those of the defaults of quotad, moved, and below those that
// systems take for outgoing connections.
const (
	lockPort   = 17777
	redisPort  = 16379
	httpPort   = 18080
	grpcPort   = 18081
	peerPort   = 18082
	gossipPort = 17946
)

// Start starts a fleet and waits until every node serves and has heard every
// other region.
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
		r, err := f.prepare(ctx, scope, rc, c, [3]byte{127, block, byte(i)})
		if err != nil {
			return nil, fmt.Errorf("start region %s: %w", rc.Name, err)
		}
		f.Regions = append(f.Regions, r)
	}
	if err := f.each(func(n *Node) error { return n.begin(ctx) }); err != nil {
		return nil, err
	}
	return f, f.Meet(ctx)
}

// WriteLimits replaces the limits document of all nodes, which notice by
// themselves.
func (f *Fleet) WriteLimits(text string) error {
	// A rename lets no node read half of it.
	if err := os.WriteFile(f.limits+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(f.limits+".new", f.limits)
}

// Region returns the region of that name, or nil.
func (f *Fleet) Region(name string) *Region {
	for _, r := range f.Regions {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// prepare starts a region's Redis and makes its nodes, which are still to be
// started; the prefix begins all their addresses.
func (f *Fleet) prepare(ctx context.Context, scope Scope, rc RegionConfig, c Config, prefix [3]byte) (*Region, error) {
	address := func(last byte, port uint16) string {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{prefix[0], prefix[1], prefix[2], last}), port).String()
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
		if r.Redis, err = StartRedis(ctx, scope, RedisConfig{Address: address(1, redisPort), Args: rc.RedisArgs}); err != nil {
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
		n := &Node{Region: rc.Name, Name: fmt.Sprintf("n%d", i+1), HTTP: address(last, httpPort), GRPC: address(last, grpcPort), Peer: address(last, peerPort), quotad: f.quotad}
		n.IP = netip.MustParseAddrPort(n.HTTP).Addr()
		n.name, n.dir = "quotad "+n.Region+"/"+n.Name, scope.TempDir()
		file := nodeFile{nodes: nodes, redis: store, limits: f.limits, peer: n.Peer,
			gossip: address(last, gossipPort), seed: netip.AddrPortFrom(netip.AddrFrom4([4]byte{prefix[0], prefix[1], 0, 11}), gossipPort).String(),
			settings: c.Settings}
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

// each calls do for all nodes at the same time.
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

// Meet waits until every node that runs has heard every other region and is
// degraded towards none.
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

// reserve finds a part of 127.0.0.0/8 that no other fleet uses: its second
// byte, which is ours until the scope ends.
func reserve(scope Scope) (byte, error) {
	var last error
	for range 100 {
		block := byte(20 + rand.IntN(200))
		l, err := net.Listen("tcp", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, block, 255, 254}), lockPort).String())
		if err == nil {
			scope.Cleanup(func() { _ = l.Close() })
			return block, nil
		}
		last = err
	}
	return 0, fmt.Errorf("no addresses are free in 127.0.0.0/8: %w; on systems other than Linux give loopback aliases first", last)
}

// patience bounds how long a node may take to end.
const patience = 15 * time.Second
