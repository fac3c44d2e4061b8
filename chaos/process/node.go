package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// Node is one quotad node. Safe for concurrent use.
type Node struct {
	Process
	Region, Name string
	IP           netip.Addr
	HTTP, GRPC   string // host:port of its API

	quotad string
	client *http.Client
	conn   *grpc.ClientConn
	rpc    quotadv1.QuotaServiceClient
}

// nodeFile is what a node file says beside the node's names and API.
type nodeFile struct {
	nodes                             int
	redis, limits, peer, gossip, seed string
	settings                          []string
}

// configure writes the node file and prepares the callers of the API.
func (n *Node) configure(f nodeFile) (err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "region: %s\nnode: %s\nnodes: %d\ndata_dir: data\npolicy: %s\nredis: {url: %q}\n", n.Region, n.Name, f.nodes, f.limits, f.redis)
	fmt.Fprintf(&b, "listen: {http: %q, grpc: %q, peer: %q, gossip: %q}\nseeds: [%q]\n", n.HTTP, n.GRPC, f.peer, f.gossip, f.seed)
	for _, line := range f.settings {
		b.WriteString(line + "\n")
	}
	if err := os.WriteFile(n.file(), []byte(b.String()), 0o644); err != nil {
		return err
	}
	n.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: mostUnderWay}}
	n.conn, err = grpc.NewClient("passthrough:///"+n.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(sendWatch{}), grpc.WithDisableServiceConfig(),
		// A node that was started again is found again at once.
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second, Backoff: backoff.Config{
			BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 250 * time.Millisecond}}))
	if err == nil {
		n.rpc = quotadv1.NewQuotaServiceClient(n.conn)
	}
	return err
}

func (n *Node) file() string { return filepath.Join(n.dir, "node.yaml") }

// end kills the process and lets go of its connections.
func (n *Node) end() {
	n.Kill()
	n.client.CloseIdleConnections()
	_ = n.conn.Close() // closing twice is all that it could complain of
}

// Start starts the node, again if it has ended, and waits until it is ready.
// The first start says that its region never served before.
// One that ends on its way is started again, a few times, as whatever keeps it
// running would: on a busy machine a Redis may be too slow to begin with.
func (n *Node) Start(ctx context.Context) (err error) {
	for range 4 {
		if err = n.Launch(); err != nil {
			return err
		}
		if err = n.Ready(ctx); err == nil || n.Running() {
			return err
		}
	}
	return err
}

// Launch is Start without the waiting.
func (n *Node) Launch() error {
	args := []string{"serve", "--config", n.file()}
	if n.Starts() == 0 {
		args = append(args, "--bootstrap")
	}
	return n.start(n.quotad, args...)
}

// begin starts the node, and again if it gives up, as a service manager does: on
// a busy machine its Redis may have been too slow for it.
func (n *Node) begin(ctx context.Context) error {
	err := n.Start(ctx)
	for again := 0; again < 2 && err != nil && !n.Running(); again++ {
		err = n.start(n.quotad, "serve", "--config", n.file(), "--bootstrap")
		if err == nil {
			err = n.Ready(ctx)
		}
	}
	return err
}

// Ready waits until the node says that it may be sent requests.
func (n *Node) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return n.await(ctx, "ready", func(ctx context.Context) error {
		_, err := n.request(ctx, http.MethodGet, "/readyz", nil)
		return err
	})
}

// Stop asks the node to end, and waits until it has.
func (n *Node) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return n.Terminate(ctx)
}

// Status is what a node says of itself, as far as tests ask for it.
type Status struct {
	Ready   bool     `json:"ready"`
	Epoch   string   `json:"epoch"`
	Members []string `json:"members"`
	Peers   []struct {
		Region   string `json:"region"`
		Heard    bool   `json:"heard"`
		Degraded bool   `json:"degraded"`
	} `json:"peers"`
	Counters map[string]int64 `json:"counters"`
}

// inTouch says what is missing for the node to have heard so many regions.
func (s Status) inTouch(regions int) error {
	if len(s.Peers) < regions {
		return fmt.Errorf("%d of %d other regions are known", len(s.Peers), regions)
	}
	for _, p := range s.Peers {
		if !p.Heard || p.Degraded {
			return fmt.Errorf("region %s is out of touch", p.Region)
		}
	}
	return nil
}

// Status asks the node for its status.
func (n *Node) Status(ctx context.Context) (s Status, err error) {
	answer, err := n.request(ctx, http.MethodGet, "/v1/status", nil)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(answer, &s); err != nil {
		return s, fmt.Errorf("read the status of %s: %w", n.name, err)
	}
	return s, nil
}

// Cut cuts the node off from a region for d, in a direction (in, out or both);
// 0 heals. The node needs the setting chaos: true.
func (n *Node) Cut(ctx context.Context, region, direction string, d time.Duration) error {
	q := map[string]any{"region": region, "direction": direction}
	if d > 0 {
		q["for"] = d.String()
	} else {
		q["heal"] = true
	}
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	_, err = n.request(ctx, http.MethodPost, "/v1/cut", body)
	return err
}

// requestTimeout bounds the requests of operators.
const requestTimeout = 5 * time.Second

// request calls the HTTP API; any answer but 200 is an error.
func (n *Node) request(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	code, answer, err := n.exchange(ctx, method, path, body)
	if err == nil && code != http.StatusOK {
		err = errors.New(http.StatusText(code) + ": " + string(bytes.TrimSpace(answer)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s of %s: %w", method, path, n.name, err)
	}
	return answer, nil
}

// mostAnswer bounds what is read of an answer, in bytes.
const mostAnswer = 1 << 20

func (n *Node) exchange(ctx context.Context, method, path string, body []byte) (code int, answer []byte, err error) {
	q, err := http.NewRequestWithContext(ctx, method, "http://"+n.HTTP+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	response, err := n.client.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	return response.StatusCode, answer, err
}
