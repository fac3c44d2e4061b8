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
	http         string // host:port
	client       *http.Client
	dials        atomic.Uint64    // HTTP connections that were to be made
	conn         *grpc.ClientConn // nil: over HTTP only
	rpc          quotadv1.QuotaServiceClient
}

const (
	// mostIdle bounds the connections kept for later requests.
	mostIdle = 256
	// requestTimeout bounds the requests of operators.
	requestTimeout = 5 * time.Second
	// mostAnswer bounds what is read of an answer, in bytes.
	mostAnswer = 1 << 20
)

// New returns a caller of the node of that name in a region, whose API is at
// two addresses, both host:port; without that of gRPC it calls over HTTP only.
// Nothing is called before the first request.
func New(region, node, httpAddress, grpcAddress string) (*Caller, error) {
	c := &Caller{region: region, node: node, http: httpAddress}
	c.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: mostIdle, DialContext: c.dial}}
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

// Dials counts the HTTP connections that the caller set out to make. While the
// number stays the same, all it hears is from one start of the node.
func (c *Caller) Dials() uint64 { return c.dials.Load() }

// connect makes a connection that finds a node which was started again at once.
func connect(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(sendWatch{}), grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second, Backoff: backoff.Config{
			BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 250 * time.Millisecond}}))
}

// Close lets go of the connections. The caller is of no use over gRPC
// afterwards; closing it twice does nothing.
func (c *Caller) Close() {
	c.client.CloseIdleConnections()
	if c.conn != nil {
		_ = c.conn.Close() // closing twice is all that it could complain of
	}
}

// Request calls the HTTP API as an operator, for at most 5 s, and returns the
// answer; any but 200 is an error that names the node and quotes the answer.
func (c *Caller) Request(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	code, answer, err := c.exchange(ctx, method, path, body)
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

func (c *Caller) exchange(ctx context.Context, method, path string, body []byte) (code int, answer []byte, err error) {
	q, err := http.NewRequestWithContext(ctx, method, "http://"+c.http+path, bytes.NewReader(body))
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
	answer, err = io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	return response.StatusCode, answer, err
}
