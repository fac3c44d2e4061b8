package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/envoys"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/authz"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/front/tracing"
)

// Node is what the server needs of a node. *region.Node implements it. Safe for concurrent use.
type Node interface {
	region.Decisions
	Adopt(ctx context.Context, d *policy.Document) error
	// Waive takes the operator's word about all losses of the region's store so far.
	Waive(ctx context.Context) error
	Document() *policy.Document
	AskDocuments(ctx context.Context) []region.NodeDocuments
	Status() region.Status
	Bucket(ctx context.Context, limit, domain string, descriptors map[string]string) (region.Bucket,
		error)
	Views
	Envoys() *envoys.Assigner
	Ready() error
	Recovering() []region.Recovering
	Metrics() *prometheus.Registry
	// CountPanic counts a panic that was recovered from, by place.
	CountPanic(where string)
}

var _ Node = (*region.Node)(nil)

// Port is how one of the two ports is protected: the API, which is for callers, and the admin
// listener, which is for operators. The zero value lets everybody do everything in plain text.
type Port struct {
	// TLS returns the configuration for these application protocols; nil: plain text.
	TLS   func(protocols ...string) *tls.Config
	Guard *roles.Guard
}

// Options are how a server is protected.
type Options struct {
	API, Admin Port
	Audit      *audit.Log  // nil: acts are written down nowhere
	Roles      *roles.Book // nil: there are no roles
	// Headers says which headers decisions over HTTP have, and EnvoyHeaders which ones Envoy is
	// told to add to its answers; of those, the empty text means none. Envoy adds headers of its
	// own if it is configured so.
	Headers, EnvoyHeaders Headers
	Proxies               *authz.Mapping // of the requests of proxies; nil: there is none
	// Traces traces decisions. nil: nothing is traced, and nothing stands before a handler for it.
	// The server does not close it.
	Traces *tracing.Tracer
	// Hosts are the names by which callers may call listeners on loopback that have no roles, beside
	// localhost and loopback addresses; in lower case.
	Hosts []string
	// Wait is how long a call over gRPC waits whose caller names no time. 0: admit.DefaultWait.
	Wait time.Duration
	// Console is where a browser is sent that asks the API for /. Empty: it is told that there is
	// nothing.
	Console string
}

// Server serves one node over gRPC and HTTP. It does not own the node. Safe for concurrent use.
type Server struct {
	node    Node
	log     *slog.Logger
	options Options
	grpc    *grpc.Server
	http    *http.Server
	admin   *http.Server
	work    *door.Work
	// batches holds those that are under way over HTTP.
	batches places
	health  *healthService
	rls     *rls
	proxies forProxies
	// overviews makes one overview at a time, for all who ask.
	overviews overviews
	watchers  watchers

	rpcPanics, webPanics *door.Panics

	draining atomic.Bool
	cutter   Cutter // nil: the node makes no cuts
	// rehearsal makes load and kills stores; nil: the node does neither.
	rehearsal Rehearsal
	// ending is over when calls should end: watchers of health, and the goroutine that follows
	// readiness.
	ending context.Context
	end    context.CancelFunc
}

// New returns a server, which serves once it is given listeners: those of the API for callers, and
// one for operators. /metrics has the node's registry
// and the collectors of the Go runtime and of the process. So the node's registry must not have
// these.
func New(node Node, log *slog.Logger, o Options) *Server {
	if o.Traces != nil {
		node = tracedNode{node}
	}
	s := &Server{node: node, log: log, options: o, work: door.NewWork(), watchers: newWatchers(),
		overviews: overviews{turn: make(chan struct{}, 1)},
		rpcPanics: door.NewPanics(log, "grpc/", node.CountPanic), webPanics: door.NewPanics(log,
			"http", node.CountPanic)}
	s.ending, s.end = context.WithCancel(context.Background())
	node.HandleDescribe(s.view)
	s.health = newHealthService(s.ready, s.ending)
	s.rls, s.proxies = newRLS(s), newForProxies(o.Proxies)
	s.grpc = s.newGRPCServer()
	s.http = newHTTPServer(s.handler(), door.NewHandshakes(log, "http"))
	s.http.Protocols = protocols(false)
	s.admin = newHTTPServer(s.adminHandler(), door.NewHandshakes(log, "admin"))
	s.admin.Protocols = protocols(true)
	s.admin.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxAdminCalls}
	return s
}

// ServeGRPC serves gRPC on l until Shutdown or Close, and then returns nil. It closes l.
func (s *Server) ServeGRPC(l net.Listener) error {
	following, stop := context.WithCancel(s.ending)
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
func (s *Server) ServeHTTP(l net.Listener) error {
	return serveWeb(s.http, l, s.options.API.TLS, "http/1.1")
}

// ServeAdmin serves operators on l until Shutdown or Close, and then returns nil. It closes l.
func (s *Server) ServeAdmin(l net.Listener) error {
	return serveWeb(s.admin, l, s.options.Admin.TLS, "h2", "http/1.1")
}

func serveWeb(server *http.Server, l net.Listener, trust func(...string) *tls.Config,
	protocols ...string) (err error) {
	if trust != nil {
		server.TLSConfig = trust(protocols...)
		err = server.ServeTLS(l, "", "")
	} else {
		err = server.Serve(l)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	}
	return nil
}

// Drain makes the server look not ready (gRPC health NOT_SERVING, /readyz 503) while it goes on
// serving. Behind a load balancer, call Drain first, wait until the balancer has noticed, and then
// call Shutdown.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.health.Shutdown()
}

// Shutdown drains, refuses new calls, and waits for calls under way. If ctx ends first, it cuts
// them off and returns an error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	s.end()
	var web sync.WaitGroup
	var webErr, adminErr error
	web.Go(func() { webErr = s.http.Shutdown(ctx) })
	web.Go(func() { adminErr = s.admin.Shutdown(ctx) })
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
	web.Wait()
	if err := errors.Join(rpcErr, webErr, adminErr); err != nil {
		return errors.Join(fmt.Errorf(
			"shut down: calls were still under way and have been cut off; allow more time: %w",
			err), s.http.Close(), s.admin.Close())
	}
	return nil
}

// Close ends the server at once and cuts off calls under way.
func (s *Server) Close() error {
	s.Drain()
	s.end()
	s.grpc.Stop()
	return errors.Join(s.http.Close(), s.admin.Close())
}

var errDraining = errors.New("the server is shutting down")

// ready returns why the node should not get requests, nil if it should.
func (s *Server) ready() error {
	if s.draining.Load() {
		return errDraining
	}
	return s.node.Ready()
}

// Bounds of one HTTP connection. A caller that is slower is answered 408 if possible, and its
// connection is closed.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second // for headers and body
	writeTimeout  = 30 * time.Second // for reading the request and writing the answer together
	idleTimeout   = 2 * time.Minute
	// maxHeaderBytes bounds the headers. Larger ones are answered 431. maxBodyBytes and
	// maxBatchBytes bound the body.
	maxHeaderBytes = 16 << 10
)

// protocols returns what a port speaks. The API has HTTP/1.1 alone, of which each connection has
// one request at a time, so bounds on connections are bounds on requests. Operators have HTTP/2 as
// well, over TLS alone, as browsers do: they open six connections to a host over HTTP/1.1, and
// /v1/watch holds one for each tab.
func protocols(http2 bool) *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	p.SetHTTP2(http2)
	return p
}

// newHTTPServer bounds what a client can occupy: slow headers, slow bodies, answers that it does
// not read, idle connections and endless headers.
func newHTTPServer(h http.Handler, handshakes *door.Handshakes) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          handshakes.ErrorLog(),
		BaseContext:       baseContext,
	}
}
