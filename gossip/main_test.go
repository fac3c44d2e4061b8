package gossip

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/suite"
)

const oneWay = 40 * time.Millisecond

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maxima is the state the tests spread: the largest number seen per name.
type maxima struct {
	mu sync.Mutex
	m  map[string]int
}

func newMaxima() *maxima { return &maxima{m: make(map[string]int)} }

func (s *maxima) MarshalBinary() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.Marshal(s.m)
}

func (s *maxima) Merge(b []byte) (news bool, err error) {
	var other map[string]int
	if err := json.Unmarshal(b, &other); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, v := range other {
		if old, ok := s.m[k]; !ok || v > old {
			s.m[k] = v
			news = true
		}
	}
	return news, nil
}

func (s *maxima) clone() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.m)
}

// node is a gossip node under test.
type node struct {
	*Gossip
	state *maxima
	host  *network.Host
	log   *syncBuffer
}

// set writes to the state; spread also broadcasts it.
func (n *node) set(key string, v int) []byte {
	b, _ := json.Marshal(map[string]int{key: v})
	n.state.Merge(b)
	return b
}

func (n *node) spread(t *testing.T, key string, v int) {
	t.Helper()
	suite.Must(t, n.Broadcast(key, n.set(key, v)))
}

func (n *node) names() (names []string) {
	for _, m := range n.Members() {
		names = append(names, m.Name)
	}
	return names
}

func (n *node) openStreams() int {
	n.transport.mu.Lock()
	defer n.transport.mu.Unlock()
	return len(n.transport.open)
}

func (n *node) callsUnderWay() int {
	n.caller.mu.Lock()
	defer n.caller.mu.Unlock()
	return len(n.caller.calls)
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) has(s string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.b.String(), s)
}

// newNetwork returns a network whose hosts are 40 ms apart, closed with the test.
func newNetwork(t *testing.T) *network.Network {
	t.Helper()
	n := network.New()
	n.SetDelayAll(oneWay)
	t.Cleanup(func() { n.Close() })
	return n
}

// addr is where the node of that name listens.
func addr(net *network.Network, name string) netip.AddrPort {
	return netip.AddrPortFrom(net.Host(name).IP(), 7946)
}

// config is that of a node of that name, on the host of that name.
func config(t *testing.T, net *network.Network, name string) (Config, *node) {
	t.Helper()
	n := &node{state: newMaxima(), host: net.Host(name), log: &syncBuffer{}}
	packets, err := n.host.ListenPacket(7946)
	suite.Must(t, err)
	streams, err := n.host.Listen(7946)
	suite.Must(t, err)
	return Config{
		Name:      name,
		Meta:      []byte("meta of " + name),
		Packets:   packets,
		Streams:   streams,
		Dial:      n.host.DialContext,
		Advertise: addr(net, name),
		State:     n.state,
		Logger:    slog.New(slog.NewTextHandler(n.log, nil)),
	}, n
}

// start runs a node, closed with the test; change may edit its configuration.
func start(t *testing.T, net *network.Network, name string, change func(*Config)) *node {
	t.Helper()
	cfg, n := config(t, net, name)
	if change != nil {
		change(&cfg)
	}
	g, err := Start(cfg)
	suite.Must(t, err)
	t.Cleanup(func() { g.Close() })
	n.Gossip = g
	return n
}

// seeds returns a change of a configuration that sets its seeds.
func seeds(net *network.Network, names ...string) func(*Config) {
	return func(c *Config) {
		for _, name := range names {
			c.Seeds = append(c.Seeds, addr(net, name).String())
		}
	}
}

// cluster starts nodes that have the first as their seed, and waits until they know each other.
func cluster(t *testing.T, net *network.Network, names ...string) []*node {
	t.Helper()
	var nodes []*node
	for _, name := range names {
		nodes = append(nodes, start(t, net, name, seeds(net, names[0])))
	}
	within(t, 15*time.Second, "the cluster to form",
		func() error { return sameView(nodes, names...) })
	return nodes
}

// within waits, in virtual time, until check is content.
func within(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	start := time.Now()
	for {
		err := check()
		if err == nil {
			t.Logf("%s: after %v of virtual time", what, time.Since(start))
			return
		}
		if time.Since(start) >= limit {
			t.Fatalf("waited %v for %s: %v", limit, what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// sameView checks that each node sees exactly the named members.
func sameView(nodes []*node, names ...string) error {
	want := slices.Sorted(slices.Values(names))
	for _, n := range nodes {
		if got := n.names(); !slices.Equal(got, want) {
			return fmt.Errorf("%s sees %v, want %v", n.cfg.Name, got, want)
		}
	}
	return nil
}

// sameState checks that all nodes hold exactly this state.
func sameState(nodes []*node, want map[string]int) error {
	for _, n := range nodes {
		if got := n.state.clone(); !maps.Equal(got, want) {
			return fmt.Errorf("%s holds %v, want %v", n.cfg.Name, got, want)
		}
	}
	return nil
}

func both(a, b error) error { return errors.Join(a, b) }
