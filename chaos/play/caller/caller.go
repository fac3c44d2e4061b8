package caller

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// Node is a node to call, and how.
type Node struct {
	Region, Name string
	// HTTP and Admin are where the API and the admin listener are, host:port, or
	// https://host:port with TLS.
	HTTP, Admin string
	GRPC        string      // host:port; empty: it is called over HTTP only
	Token       string      // sent with requests over HTTP; empty: none
	TLS         *tls.Config // of connections with TLS; nil: as the system has it
}

// Caller calls one node. Safe for concurrent use.
type Caller struct {
	node   Node
	client *http.Client
	dials  atomic.Uint64    // HTTP connections that it tried to make
	conn   *grpc.ClientConn // nil: over HTTP only
	rpc    quotadv1.QuotaServiceClient
}

// ErrUnknown says that the node asks who calls, and does not know this caller.
var ErrUnknown = errors.New("the node does not know who calls")

const (
	// maxIdle bounds the connections kept for later requests.
	maxIdle = 256
	// requestTimeout bounds each call of Request.
	requestTimeout = 5 * time.Second
	// maxAnswer is the maximum number of bytes read of an answer.
	maxAnswer = 1 << 20
)

// New returns a caller of a node, and itself calls nothing.
func New(n Node) (*Caller, error) {
	c := &Caller{node: n}
	c.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxIdle,
		DialContext: c.dial, TLSClientConfig: n.TLS},
		// A node redirects nobody. Following would show the token to whoever answered.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if n.GRPC == "" {
		return c, nil
	}
	var err error
	if c.conn, err = connect(n.GRPC); err != nil {
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
	return c.request(ctx, c.node.Admin, method, path, body)
}

// request is Request at one of the node's addresses.
func (c *Caller) request(ctx context.Context, address, method, path string,
	body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	code, answer, err := c.exchange(ctx, address, method, path, body)
	switch {
	case err != nil || code == http.StatusOK:
	case code == http.StatusUnauthorized:
		err = fmt.Errorf("%w: %s", ErrUnknown, told(answer))
	default:
		err = errors.New(http.StatusText(code) + ": " + told(answer))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s of %s: %w", method, path, c, err)
	}
	return answer, nil
}

// told returns what an answer that is no success tells: the detail of a problem (RFC 9457), or all.
func told(answer []byte) string {
	var problem struct{ Detail string }
	if json.Unmarshal(answer, &problem) == nil && problem.Detail != "" {
		return problem.Detail
	}
	return string(bytes.TrimSpace(answer))
}

// String names the node.
func (c *Caller) String() string { return "quotad " + c.node.Region + "/" + c.node.Name }

func (c *Caller) exchange(ctx context.Context, address, method, path string,
	body []byte) (code int, answer []byte, err error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	q, err := http.NewRequestWithContext(ctx, method, address+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if c.node.Token != "" {
		q.Header.Set("Authorization", "Bearer "+c.node.Token)
	}
	response, err := c.client.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, answer, err
}
