package process

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/quotad/quotad/chaos/play/caller"
)

// Node is one quotad node. Safe for concurrent use.
type Node struct {
	Process
	Region, Name string
	IP           netip.Addr
	HTTP, GRPC   string // host:port of its API
	Admin        string // host:port of its admin listener
	Peer         string // host:port of its peer port
	Disk         *Disk  // of its journal; nil without RegionConfig.Disks

	quotad string
	calls  *caller.Caller
}

// nodeFile is the content of a node file without the node's name, region and API.
type nodeFile struct {
	nodes                             int
	redis, limits, peer, gossip, seed string
	settings                          []string
}

// configure writes the node file and prepares the callers of the API.
func (n *Node) configure(f nodeFile) (err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "region: %s\nnode: %s\nnodes: %d\ndata_dir: data\npolicy: %s\n", n.Region, n.Name, f.nodes, f.limits)
	fmt.Fprintf(&b, "redis: {url: %q}\n", f.redis)
	fmt.Fprintf(&b, "listen: {http: %q, grpc: %q, admin: %q, peer: %q, gossip: %q}\nseeds: [%q]\n",
		n.HTTP, n.GRPC, n.Admin, f.peer, f.gossip, f.seed)
	for _, line := range f.settings {
		b.WriteString(line + "\n")
	}
	if err := os.WriteFile(n.file(), []byte(b.String()), 0o644); err != nil {
		return err
	}
	n.calls, err = caller.New(caller.Node{Region: n.Region, Name: n.Name, HTTP: n.HTTP,
		Admin: n.Admin, GRPC: n.GRPC})
	return err
}

func (n *Node) file() string { return filepath.Join(n.dir, "node.yaml") }

// end kills the process and closes its connections.
func (n *Node) end() {
	n.Kill()
	n.calls.Close()
}

// Start starts the node, also after it has ended, and waits until it is ready. The first start
// passes --bootstrap, because the region has never served before. If the node ends before it is
// ready, Start starts it again, up to four times in all, as a service manager would: on a busy
// machine its Redis may at first be too slow.
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

// Launch starts the node as Start does, but does not wait.
func (n *Node) Launch() error {
	args := []string{"serve", "--config", n.file()}
	if n.Starts() == 0 {
		args = append(args, "--bootstrap")
	}
	return n.start(n.quotad, args...)
}

// begin starts the node for the first time. If it ends, begin starts it again with --bootstrap, up
// to twice: on a busy machine its Redis may have been too slow.
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

// Ready waits until the node reports that it is ready for requests.
func (n *Node) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return n.await(ctx, "ready", func(ctx context.Context) error {
		_, err := n.calls.Request(ctx, http.MethodGet, "/readyz", nil)
		return err
	})
}

// IsReady reports whether the node says that it is ready for requests.
func (n *Node) IsReady(ctx context.Context) bool {
	_, err := n.calls.Request(ctx, http.MethodGet, "/readyz", nil)
	return err == nil
}

// Stop asks the node to end, and waits until it has.
func (n *Node) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return n.Terminate(ctx)
}

// Status is the part of a node's status that tests need.
type Status = caller.Status

// Status asks the node for its status.
func (n *Node) Status(ctx context.Context) (Status, error) { return n.calls.Status(ctx) }
