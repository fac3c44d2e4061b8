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

// maxBackoff is the longest wait before a lost connection is tried again. gRPC's own default is
// two minutes.
const maxBackoff = time.Second

// Client sends messages to other regions. It is safe for concurrent use.
type Client struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	tls  *TLS

	mu       sync.Mutex
	closed   bool
	nodes    map[string][]string // addresses by region; the first is called
	answered map[node]time.Time  // when each of nodes last answered
	misses   map[string]int      // by region, the calls that failed since the last answer
	refused  uint64              // addresses that were not kept
	conns    map[node]*grpc.ClientConn
}

const (
	// maxAddresses bounds the addresses of one region's nodes. Further ones are not kept, and
	// counted.
	maxAddresses = 64
	// answersCount is how long after its last answer Lately returns an address. So package region
	// keeps an address that answers although gossip does not name it.
	answersCount = 30 * time.Second
)

// node is an address as one of a region's. With TLS a connection made for one region serves no
// other.
type node struct{ region, address string }

// NewClient returns a client that opens connections with dial. With TLS it calls only nodes whose
// certificate names the called region. With a nil t it speaks plain text to whoever answers.
func NewClient(dial func(ctx context.Context, network, address string) (net.Conn, error), t *TLS) *Client {
	return &Client{dial: dial, tls: t, nodes: map[string][]string{}, answered: map[node]time.Time{},
		misses: map[string]int{}, conns: map[node]*grpc.ClientConn{}}
}

// SetNodes tells the client the addresses of a region's nodes, as host:port. If there are too many,
// it prefers addresses that have answered, then addresses that it has already, then those named
// first.
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

// bounded drops addresses beyond maxAddresses, the last ones first. It drops addresses that have
// answered only if there are no others to drop. The caller holds mu.
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

// hasAnswered reports whether an address that is kept has ever answered. The caller holds mu.
func (c *Client) hasAnswered(region, address string) bool {
	_, ok := c.answered[node{region, address}]
	return ok
}

// Lately returns the addresses of a region that answered within answersCount.
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

// AddressesRefused returns how many addresses were not kept since the start, for want of room.
func (c *Client) AddressesRefused() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// ErrNoNode says that no node of a region is known.
var ErrNoNode = errors.New("no node of the region is known yet")

// ErrClosed says that the client was closed.
var ErrClosed = errors.New("the client of other regions is closed")

// Exchange sends a message to one node of a region and returns its reply. It fails with ErrNoNode
// if no node is known, with ErrClosed after Close, and otherwise with an error that carries the
// gRPC status.
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

// pick returns the address of the node that is called for a region, and the connection to it.
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

// connect returns the connection to a node. It makes one if there is none. The caller holds mu.
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
		// The largest answer is let in at once. With windows of its own gRPC would send a ping with
		// every answer, to measure how much is on the way.
		grpc.WithStaticStreamWindowSize(maxMessageBytes),
		grpc.WithStaticConnWindowSize(maxMessageBytes),
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

// failed moves a node that did not answer behind the others of its region, and chooses the node to
// call next. Gossip names the addresses, and anybody may invent some there. So failed makes every
// second call go to a node that has answered before, however many invented addresses there are:
// after a node that never answered comes one that has; after one that has, another such node and
// one that never answered take turns.
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

// Close ends all connections and calls. The client makes no new ones.
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
