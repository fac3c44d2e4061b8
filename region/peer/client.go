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

// longestBackoff bounds the wait before a lost connection is tried again; gRPC's own bound is two minutes.
const longestBackoff = time.Second

// Client sends messages to other regions. Safe for concurrent use.
type Client struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	tls  *TLS

	mu     sync.Mutex
	closed bool
	nodes  map[string][]string // by region; the first is called, and moves to the end when it fails
	conns  map[node]*grpc.ClientConn
}

// node is one address as that of one region: with TLS, a connection made for one region is good for no other.
type node struct{ region, address string }

// NewClient returns a client that opens connections with dial. With TLS it calls only nodes whose certificate is of the
// region that is called; with nil it speaks plain text to whoever answers.
func NewClient(dial func(ctx context.Context, network, address string) (net.Conn, error), t *TLS) *Client {
	return &Client{dial: dial, tls: t, nodes: map[string][]string{}, conns: map[node]*grpc.ClientConn{}}
}

// SetNodes tells the client where a region's nodes are, as host:port.
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
	c.nodes[region] = kept
	for _, a := range known {
		if conn := c.conns[node{region, a}]; conn != nil && !slices.Contains(kept, a) {
			_ = conn.Close()
			delete(c.conns, node{region, a})
		}
	}
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
			Backoff: backoff.Config{BaseDelay: longestBackoff / 10, Multiplier: 1.6, Jitter: 0.2, MaxDelay: longestBackoff}}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableServiceConfig(),
	)
	if err == nil {
		c.conns[n] = conn
	}
	return conn, err
}

// failed moves a node that did not answer behind the others of its region.
func (c *Client) failed(region, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if nodes := c.nodes[region]; len(nodes) > 1 && nodes[0] == address {
		c.nodes[region] = append(nodes[1:], address)
	}
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
