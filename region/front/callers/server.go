package callers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/envoys"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/front/authz"
	"github.com/quotad/quotad/region/front/tracing"
	"github.com/quotad/quotad/region/front/wire"
)

// Node decides what callers ask. *region.Node implements it. Safe for concurrent use.
type Node interface {
	Check(ctx context.Context, q admit.Request) (admit.Decision, error)
	CheckBatch(ctx context.Context, all []admit.Request) ([]admit.Decision, error)
	CheckLists(ctx context.Context, q admit.Request) (admit.ListsDecision, error)
	Peek(ctx context.Context, q admit.Request) (admit.Decision, error)
	// Report is for uses whose cost is known only afterwards.
	Report(ctx context.Context, q admit.Request) (admit.Decision, error)
	Take(ctx context.Context, t admit.Take) (admit.Taken, error)
	Settle(ctx context.Context, receipt string, used quantity.Units) (receipts.Settled, error)
	RefundLast(ctx context.Context, domain string, list admit.List, replaced []string) (receipts.Settled, error)
	// Receipt returns the buckets that a receipt is about, and Buckets those that a list meets.
	Receipt(receipt string) ([]policy.BucketRef, error)
	Buckets(domain string, list admit.List) []policy.BucketRef
	Busy(caller string, waits time.Duration) bool
	Document() *policy.Document
	Envoys() *envoys.Assigner
	// CountPanic counts a panic that was recovered from, by place.
	CountPanic(where string)
}

// Options are how callers are served.
type Options struct {
	wire.Port
	// Headers says which headers decisions over HTTP have, and EnvoyHeaders which ones Envoy is
	// told to add to its answers; of those, the empty text means none. Envoy adds headers of its
	// own if it is configured so.
	Headers, EnvoyHeaders Headers
	// MaxRate is how many times the average rate of a limit RateLimit may suggest, for windows of a
	// day and longer, up to ratelimit.MaxMaxRate. 0: no bound.
	MaxRate int
	Proxies *authz.Mapping // of the requests of proxies; nil: there is none
	// Traces traces decisions. nil: nothing is traced, and nothing stands before a handler for it.
	// The server does not close it.
	Traces *tracing.Tracer
	// Wait is how long a call over gRPC waits whose caller names no time. 0: admit.DefaultWait.
	Wait time.Duration
	// Console is where a browser is sent that asks the API for /. Empty: it is told that there is
	// nothing.
	Console string
}

// Server serves the callers of one node over gRPC and HTTP. It does not own the node. Safe for
// concurrent use.
type Server struct {
	node    Node
	log     *slog.Logger
	life    *wire.Life
	options Options
	grpc    *grpc.Server
	http    *http.Server
	work    *door.Work
	// batches holds those that are under way over HTTP.
	batches places
	health  *healthService
	rls     *rls
	proxies forProxies
	panics  *door.Panics // of gRPC
}

// New returns a server, which serves once it is given listeners.
func New(node Node, life *wire.Life, log *slog.Logger, o Options) *Server {
	if o.Traces != nil {
		node = tracedNode{node}
	}
	s := &Server{node: node, log: log, life: life, options: o, work: door.NewWork(),
		health: newHealthService(life), proxies: newForProxies(o.Proxies),
		panics: door.NewPanics(log, "grpc/", node.CountPanic)}
	s.rls = newRLS(node, o)
	s.grpc = s.newGRPCServer()
	s.http = s.routes().NewServer("http", log, door.NewPanics(log, "http", node.CountPanic), 0)
	return s
}

// Collectors returns the metrics of what callers ask.
func (s *Server) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.work, s.rls.ignored, s.rls.unreturned, s.rls.tooMany,
		s.proxies.unruled, s.proxies.ignored}
}

// Calls returns the calls that are served: paths with their methods, and gRPC calls without.
func (s *Server) Calls() map[string][]string {
	all := s.routes().Methods
	for name, service := range s.grpc.GetServiceInfo() {
		for _, m := range service.Methods {
			all["/"+name+"/"+m.Name] = nil
		}
	}
	return all
}

// ServeGRPC serves gRPC on l until Shutdown or Close, and then returns nil. It closes l.
func (s *Server) ServeGRPC(l net.Listener) error {
	following, stop := context.WithCancel(s.life.Ending())
	var followed sync.WaitGroup
	followed.Go(func() { s.health.follow(following) })
	defer followed.Wait()
	defer stop()
	if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve gRPC on %s: %w", l.Addr(), err)
	}
	return nil
}

// ServeHTTP serves HTTP on l until Shutdown or Close, and then returns nil. It closes l.
func (s *Server) ServeHTTP(l net.Listener) error { return s.options.Serve(s.http, l) }

// Shutdown looks not ready, refuses new calls, and waits for calls under way. If ctx ends first, it
// cuts off those over gRPC, and returns an error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.health.Shutdown()
	s.life.End()
	web := make(chan error, 1)
	go func() { web <- s.http.Shutdown(ctx) }()
	stopped := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(stopped)
	}()
	var rpcErr error
	select {
	case <-stopped:
	case <-ctx.Done():
		rpcErr = ctx.Err()
		s.grpc.Stop()
		<-stopped
	}
	return errors.Join(rpcErr, <-web)
}

// Close ends the server at once and cuts off calls under way.
func (s *Server) Close() error {
	s.health.Shutdown()
	s.life.End()
	s.grpc.Stop()
	return s.http.Close()
}
