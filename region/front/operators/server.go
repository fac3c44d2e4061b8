package operators

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/front/wire"
	"github.com/quotad/quotad/region/memory/tally"
)

// Node is what operators see of a node, and do with it. *region.Node implements it. Safe for
// concurrent use.
type Node interface {
	Adopt(ctx context.Context, d *policy.Document) error
	// Waive takes the operator's word about all losses of the region's store so far.
	Waive(ctx context.Context) error
	// Reset clears the use of one bucket.
	Reset(ctx context.Context, limit, domain string,
		descriptors map[string]string) (cleared quantity.Units, err error)
	Document() *policy.Document
	AskDocuments(ctx context.Context) []region.NodeDocuments
	Status() region.Status
	Bucket(ctx context.Context, limit, domain string, descriptors map[string]string) (region.Bucket,
		error)
	// HandleDescribe has the node answer other nodes with what describe tells.
	HandleDescribe(describe func(context.Context, *quotadv1.ViewRequest) *quotadv1.View)
	AskViews(ctx context.Context, q *quotadv1.ViewRequest) []*quotadv1.View
	Expected() []string
	Hottest(most int) ([]tally.Hot, time.Time)
	Started() time.Time
	UnitsByLimit() map[string]admit.LimitUnits
	BucketID(limit, domain string, descriptors map[string]string) (policy.BucketID, error)
	LookAt(ctx context.Context, id policy.BucketID, peek bool) (region.Look, error)
	ListBuckets(choose func(policy.BucketRef) bool, most int) (all []region.Listed, more bool)
	Metrics() *prometheus.Registry
	// CountPanic counts a panic that was recovered from, by place.
	CountPanic(where string)
}

// Options are how operators are served, and what they may do beside.
type Options struct {
	wire.Port
	Roles     *roles.Book // nil: there are no roles
	Cutter    Cutter      // nil: the node makes no cuts
	Rehearsal Rehearsal   // nil: the node neither makes load nor kills stores
}

// Server serves the operators of one node over HTTP. It does not own the node. Safe for concurrent
// use.
type Server struct {
	node    Node
	life    *wire.Life
	options Options
	http    *http.Server
	routes  *wire.Routes
	panics  *door.Panics
	// overviews makes one overview at a time, for all who ask.
	overviews overviews
	watchers  chan struct{} // has one for each watcher
}

// New returns a server, which serves once it is given a listener. /metrics has the node's registry,
// these collectors, and those of the Go runtime and of the process. So the node's registry must not
// have these.
func New(node Node, life *wire.Life, log *slog.Logger, o Options,
	metrics ...prometheus.Collector) *Server {
	s := &Server{node: node, life: life, options: o, watchers: make(chan struct{}, maxWatchers),
		overviews: overviews{turn: make(chan struct{}, 1)},
		panics:    door.NewPanics(log, "http", node.CountPanic)}
	node.HandleDescribe(s.view)
	s.routes = s.newRoutes(metrics)
	s.http = s.routes.NewServer("admin", log, s.panics, maxAdminCalls)
	return s
}

// Calls returns the calls that are served: paths with their methods.
func (s *Server) Calls() map[string][]string { return s.routes.Methods }

// Serve serves on l until Shutdown or Close, and then returns nil. It closes l.
func (s *Server) Serve(l net.Listener) error { return s.options.Serve(s.http, l) }

// Shutdown refuses new calls, and waits for calls under way until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.life.End()
	return s.http.Shutdown(ctx)
}

// Close ends the server at once and cuts off calls under way.
func (s *Server) Close() error {
	s.life.End()
	return s.http.Close()
}
