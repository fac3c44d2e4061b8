package caller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// Caller calls one node. Safe for concurrent use.
type Caller struct {
	region, node string
	http, admin  string // host:port of the API and of the admin listener
	client       *http.Client
	dials        atomic.Uint64    // HTTP connections that it tried to make
	conn         *grpc.ClientConn // nil: over HTTP only
	rpc          quotadv1.QuotaServiceClient
}

const (
	// maxIdle bounds the connections kept for later requests.
	maxIdle = 256
	// requestTimeout bounds each call of Request.
	requestTimeout = 5 * time.Second
	// maxAnswer is the maximum number of bytes read of an answer.
	maxAnswer = 1 << 20
)

// New returns a caller of a node, by region, name and the addresses of its API and its admin
// listener, all host:port. Without a gRPC address it calls over HTTP only. New itself calls
// nothing.
func New(region, node, httpAddress, adminAddress, grpcAddress string) (*Caller, error) {
	c := &Caller{region: region, node: node, http: httpAddress, admin: adminAddress}
	c.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxIdle,
		DialContext: c.dial}}
	if grpcAddress == "" {
		return c, nil
	}
	var err error
	if c.conn, err = connect(grpcAddress); err != nil {
		return nil, err
	}
	c.rpc = quotadv1.NewQuotaServiceClient(c.conn)
	return c, nil
}

func (c *Caller) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.dials.Add(1)
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// Dials returns the number of HTTP connections that the caller tried to make. While the number
// stays the same, all answers are from one start of the node.
func (c *Caller) Dials() uint64 { return c.dials.Load() }

// connect makes a gRPC connection that reconnects at once to a restarted node.
func connect(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(sendWatch{}), grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second,
			Backoff: backoff.Config{
				BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2,
				MaxDelay: 250 * time.Millisecond}}))
}

// Close closes the connections. Afterwards the caller cannot be used over gRPC. Closing it again
// does nothing.
func (c *Caller) Close() {
	c.client.CloseIdleConnections()
	if c.conn != nil {
		_ = c.conn.Close() // the only possible error is that it was closed before
	}
}

// Request calls the admin listener as an operator, for at most 5 s, and returns the answer. If its
// code is not 200, the error names the node and quotes the answer.
func (c *Caller) Request(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return c.request(ctx, c.admin, method, path, body)
}

// request is Request at one of the node's addresses.
func (c *Caller) request(ctx context.Context, address, method, path string,
	body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	code, answer, err := c.exchange(ctx, address, method, path, body)
	if err == nil && code != http.StatusOK {
		err = errors.New(http.StatusText(code) + ": " + string(bytes.TrimSpace(answer)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s of %s: %w", method, path, c, err)
	}
	return answer, nil
}

// String names the node.
func (c *Caller) String() string { return "quotad " + c.region + "/" + c.node }

func (c *Caller) exchange(ctx context.Context, address, method, path string,
	body []byte) (code int, answer []byte, err error) {
	q, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	response, err := c.client.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, answer, err
}
