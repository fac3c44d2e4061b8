package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/quotad/quotad/allocator/exchange"
	peerv1 "github.com/quotad/quotad/proto/peer/v1"
)

// maxBackoff bounds the wait before a lost connection is tried again; gRPC's own bound is two minutes.
const maxBackoff = time.Second

// Client sends messages to other regions. Safe for concurrent use.
type Client struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	tls  *TLS

	mu       sync.Mutex
	closed   bool
	nodes    map[string][]string // by region; the first is called, and makes room when it fails
	answered map[node]time.Time  // when one of nodes answered last
	misses   map[string]int      // calls of a region that failed since the last answer
	refused  uint64
	conns    map[node]*grpc.ClientConn
}

const (
	// maxAddresses bounds the addresses of one region's nodes; those beyond are not kept, and counted.
	maxAddresses = 64
	// answersCount is how long an address that answered is kept although nobody gossips it.
	answersCount = 30 * time.Second
)

// node is one address as that of one region: with TLS, a connection made for one region is good for no other.
type node struct{ region, address string }

// NewClient returns a client that opens connections with dial. With TLS it calls only nodes whose certificate is of the
// region that is called; with nil it speaks plain text to whoever answers.
func NewClient(dial func(ctx context.Context, network, address string) (net.Conn, error), t *TLS) *Client {
	return &Client{dial: dial, tls: t, nodes: map[string][]string{}, answered: map[node]time.Time{},
		misses: map[string]int{}, conns: map[node]*grpc.ClientConn{}}
}

// SetNodes tells the client where a region's nodes are, as host:port. Where there are too many it keeps those that have
// answered, then those that it has, then those named first.
func (c *Client) SetNodes(region string, addresses []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.nodes[region]
	kept := slices.DeleteFunc(slices.Clone(known), func(a string) bool { return !slices.Contains(addresses, a) })
	for _, a := range addresses {
		if !slices.Contains(kept, a) {
			kept = append(kept, a)
		}
	}
	kept = c.bounded(region, kept)
	c.nodes[region] = kept
	for _, a := range known {
		if slices.Contains(kept, a) {
			continue
		}
		delete(c.answered, node{region, a})
		if conn := c.conns[node{region, a}]; conn != nil {
			_ = conn.Close()
			delete(c.conns, node{region, a})
		}
	}
}

// bounded drops addresses beyond the bound, from the end, those that have answered last. The caller holds mu.
func (c *Client) bounded(region string, addresses []string) []string {
	over := len(addresses) - maxAddresses
	if over <= 0 {
		return addresses
	}
	c.refused += uint64(over)
	for i := len(addresses) - 1; i >= 0 && over > 0; i-- {
		if !c.hasAnswered(region, addresses[i]) {
			addresses = slices.Delete(addresses, i, i+1)
			over--
		}
	}
	return addresses[:min(len(addresses), maxAddresses)]
}

// hasAnswered says whether an address that is kept has ever answered. The caller holds mu.
func (c *Client) hasAnswered(region, address string) bool {
	_, ok := c.answered[node{region, address}]
	return ok
}

// Lately returns the addresses of a region that answered within the last half minute.
func (c *Client) Lately(region string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, a := range c.nodes[region] {
		if at, ok := c.answered[node{region, a}]; ok && time.Since(at) < answersCount {
			all = append(all, a)
		}
	}
	return all
}

// AddressesRefused returns how many addresses were not kept since the start.
func (c *Client) AddressesRefused() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// ErrNoNode says that no node of a region is known.
var ErrNoNode = errors.New("no node of the region is known yet")

// ErrClosed says that the client was closed.
var ErrClosed = errors.New("the client of other regions is closed")

// Exchange sends a message to one node of a region and returns its reply. It fails with ErrNoNode where no node is
// known, with ErrClosed after Close, else with an error that carries the gRPC status.
func (c *Client) Exchange(ctx context.Context, region string, m exchange.Message) (exchange.Reply, error) {
	address, conn, err := c.pick(region)
	if err != nil {
		return exchange.Reply{}, fmt.Errorf("call region %s: %w", region, err)
	}
	p, err := peerv1.NewPeerServiceClient(conn).Exchange(ctx, messageToProto(m))
	if err != nil {
		c.failed(region, address)
		return exchange.Reply{}, fmt.Errorf("call region %s at %s: %w", region, address, err)
	}
	c.succeeded(region, address)
	return replyFromProto(p), nil
}

// pick returns the connection to the node of a region that is called at present.
func (c *Client) pick(region string) (string, *grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return "", nil, ErrClosed
	}
	if len(c.nodes[region]) == 0 {
		return "", nil, ErrNoNode
	}
	address := c.nodes[region][0]
	conn, err := c.connect(node{region, address})
	return address, conn, err
}

// conn returns the connection to a node.
func (c *Client) conn(n node) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	return c.connect(n)
}

// connect returns the connection to a node, made if there is none. The caller holds mu.
func (c *Client) connect(n node) (*grpc.ClientConn, error) {
	if conn := c.conns[n]; conn != nil {
		return conn, nil
	}
	trust := insecure.NewCredentials()
	if c.tls != nil {
		trust = proof{tls: c.tls, region: n.region}
	}
	conn, err := grpc.NewClient("passthrough:///"+n.address,
		grpc.WithTransportCredentials(trust),
		grpc.WithContextDialer(func(ctx context.Context, a string) (net.Conn, error) { return c.dial(ctx, "tcp", a) }),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: keepaliveTimeout,
			Backoff: backoff.Config{BaseDelay: maxBackoff / 10, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff}}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableServiceConfig(),
	)
	if err == nil {
		c.conns[n] = conn
	}
	return conn, err
}

// succeeded notes that a node answered.
func (c *Client) succeeded(region, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.misses, region)
	if slices.Contains(c.nodes[region], address) {
		c.answered[node{region, address}] = time.Now()
	}
}

// failed moves a node that did not answer behind the others of its region. After one that never answered comes one that
// has, and after one that has in turn another such and one that never did: addresses come by gossip, where anybody may invent
// some, and however many they are every second call goes to one that was there.
func (c *Client) failed(region, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes := c.nodes[region]
	if len(nodes) < 2 || nodes[0] != address {
		return
	}
	c.misses[region]++
	nodes = append(nodes[1:], address)
	proven := !c.hasAnswered(region, address) || c.misses[region]%2 == 1
	others := nodes[:len(nodes)-1]
	next := slices.IndexFunc(others, func(a string) bool { return c.hasAnswered(region, a) == proven })
	if next > 0 {
		first := nodes[next]
		nodes = slices.Insert(slices.Delete(nodes, next, next+1), 0, first)
	}
	c.nodes[region] = nodes
}

// Close ends all connections and calls; no new ones are made.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var err error
	for n, conn := range c.conns {
		err = errors.Join(err, conn.Close())
		delete(c.conns, n)
	}
	return err
}
