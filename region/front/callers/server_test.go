package callers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startServer returns a server of a node with a life of its own.
func startServer(n Node, log *slog.Logger, o Options) *Server {
	return New(n, wire.NewLife(n.(wire.Probed), o.Guard != nil), log, o)
}

// newServer returns a server that is closed at the end of the test.
func newServer(t testing.TB, n Node, log *slog.Logger) *Server {
	t.Helper()
	s := startServer(n, log, Options{})
	t.Cleanup(func() { suite.Must(t, s.Close()) })
	return s
}

// metricsOf returns the page of a server's metrics.
func metricsOf(t *testing.T, s *Server) string {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(s.Collectors()...)
	return fronts.Exchange(promhttp.HandlerFor(r, promhttp.HandlerOpts{}), http.MethodGet, "/metrics", "", "")
}

// front is a server, and a client of it.
type front struct {
	*Server
	*fronts.Client
}

// served runs f with a server in a bubble of virtual time.
func served(t *testing.T, node *fronts.Node, f func(t *testing.T, s *front)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		s := startServer(node, fronts.Quiet(), Options{})
		fronts.Serve(t, map[int]func(net.Listener) error{fronts.RPCPort: s.ServeGRPC,
			fronts.WebPort: s.ServeHTTP}, s.Close, func(c *fronts.Client) { f(t, &front{s, c}) })
	})
}

// TestSlowRequestsEnd: a client that sends nothing more does not keep its connection.
func TestSlowRequestsEnd(t *testing.T) {
	const post = "POST /v1/check HTTP/1.1\r\nHost: node\r\nContent-Type: application/json\r\n"
	for _, c := range []struct {
		name, sent, want string
		after            time.Duration
	}{
		{"within the headers", post, "", 5 * time.Second},
		{"before the body", post + "Content-Length: 20\r\n\r\n", "HTTP/1.1 408 Request Timeout", 10 * time.Second},
		{"within the body", post + "Content-Length: 20\r\n\r\n{", "HTTP/1.1 408 Request Timeout", 10 * time.Second},
		{"within a chunk", post + "Transfer-Encoding: chunked\r\n\r\n5\r\n{", "HTTP/1.1 408 Request Timeout", 10 * time.Second},
		{"after an answer", "GET /livez HTTP/1.1\r\nHost: node\r\n\r\n", "HTTP/1.1 200 OK", 2 * time.Minute},
		{"headers without end", post + "X: " + strings.Repeat("x", 32<<10), "HTTP/1.1 431 Request Header Fields Too Large", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			served(t, &fronts.Node{}, func(t *testing.T, s *front) {
				got, took := s.raw(t, c.sent)
				if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
					t.Errorf("answered %q, want %q", got, c.want)
				}
				if took < c.after || took > c.after+time.Second {
					t.Errorf("ended after %v, want %v", took, c.after)
				}
			})
		})
	}
}

// raw sends bytes over its own connection. It returns what comes back until the connection ends,
// and how long that took.
func (s *front) raw(t *testing.T, sent string) (string, time.Duration) {
	t.Helper()
	conn, err := s.Client.DialContext(t.Context(), "tcp", s.At)
	suite.Must(t, err)
	defer conn.Close()
	start := time.Now()
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	suite.Must(t, err)
	return string(got), time.Since(start)
}

// health asks for the status of a service.
func (s *front) serving(t *testing.T, service string) healthv1.HealthCheckResponse_ServingStatus {
	t.Helper()
	got, err := healthv1.NewHealthClient(s.RPC).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
	suite.Must(t, err)
	return got.Status
}

const quotaService = "quotad.v1.QuotaService"

// everyService holds all services whose health is told. envoyproxy/ratelimit is known as ratelimit.
var everyService = []string{"", quotaService, "ratelimit"}

// TestHealthFollowsReadiness: questions about health are answered with the present state, and
// watchers are updated within readyEvery.
func TestHealthFollowsReadiness(t *testing.T) {
	node := &fronts.Node{}
	node.SetReady(errors.New("not open"))
	served(t, node, func(t *testing.T, s *front) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		long := &healthv1.HealthCheckRequest{Service: strings.Repeat("s", maxServiceName+1)}
		refused, err := healthv1.NewHealthClient(s.RPC).Watch(ctx, long)
		suite.Must(t, err)
		if _, err := refused.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a name of %d bytes: %v", maxServiceName+1, err)
		}
		watch, err := healthv1.NewHealthClient(s.RPC).Watch(ctx, &healthv1.HealthCheckRequest{Service: quotaService})
		suite.Must(t, err)
		for _, c := range []struct {
			change func()
			want   healthv1.HealthCheckResponse_ServingStatus
		}{
			{func() {}, healthv1.HealthCheckResponse_NOT_SERVING},
			{func() { node.SetReady(nil) }, healthv1.HealthCheckResponse_SERVING},
			{func() { node.SetReady(errors.New("lost")) }, healthv1.HealthCheckResponse_NOT_SERVING},
			{func() { node.SetReady(nil) }, healthv1.HealthCheckResponse_SERVING},
			{s.health.Shutdown, healthv1.HealthCheckResponse_NOT_SERVING},
		} {
			start := time.Now()
			c.change()
			seen, err := watch.Recv()
			suite.Must(t, err)
			if took := time.Since(start); seen.Status != c.want || took > readyEvery {
				t.Errorf("a watcher sees %v after %v, want %v within %v", seen.Status, took, c.want, readyEvery)
			}
		}
		node.SetReady(errors.New("lost"))
		node.SetReady(nil)
		for _, service := range everyService {
			if got := s.serving(t, service); got != healthv1.HealthCheckResponse_NOT_SERVING {
				t.Errorf("%q of a draining server is %v", service, got)
			}
		}
	})
	served(t, node, func(t *testing.T, s *front) {
		for _, service := range everyService {
			node.SetReady(nil)
			if got := s.serving(t, service); got != healthv1.HealthCheckResponse_SERVING {
				t.Errorf("%q of a ready node is %v", service, got)
			}
			node.SetReady(errors.New("lost"))
			if got := s.serving(t, service); got != healthv1.HealthCheckResponse_NOT_SERVING {
				t.Errorf("%q of a node that is not ready is %v", service, got)
			}
		}
		list, err := healthv1.NewHealthClient(s.RPC).List(t.Context(), &healthv1.HealthListRequest{})
		if err != nil || list.Statuses[quotaService].GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
			t.Errorf("the list is %v, %v", list, err)
		}
		_, err = healthv1.NewHealthClient(s.RPC).Check(t.Context(), &healthv1.HealthCheckRequest{Service: "other"})
		if status.Code(err) != codes.NotFound {
			t.Errorf("an unknown service is %v, want NotFound", err)
		}
	})
}

// TestCallerGivesUp: when its connection ends, the context of an HTTP call ends, also at the node.
func TestCallerGivesUp(t *testing.T) {
	gone := make(chan error, 1)
	node := &fronts.Node{Wait: func(ctx context.Context, _ admit.Request) error {
		<-ctx.Done()
		gone <- ctx.Err()
		return ctx.Err()
	}}
	served(t, node, func(t *testing.T, s *front) {
		conn, err := s.Client.DialContext(t.Context(), "tcp", s.At)
		suite.Must(t, err)
		fmt.Fprintf(conn, "POST /v1/check HTTP/1.1\r\nHost: node\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(fronts.Request), fronts.Request)
		synctest.Wait()
		conn.Close()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the node was told %v", err)
		}
	})
}

// TestListenerFails: if serving fails, the error reports whether it was gRPC or HTTP.
func TestListenerFails(t *testing.T) {
	network := network.New()
	defer network.Close()
	l, err := network.Host("server").Listen(8081)
	suite.Must(t, err)
	l.Close()
	s := newServer(t, &fronts.Node{}, fronts.Quiet())
	if err := s.ServeGRPC(l); !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "serve gRPC on "+l.Addr().String()) {
		t.Errorf("gRPC: %v", err)
	}
	if err := s.ServeHTTP(l); !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "serve HTTP on "+l.Addr().String()) {
		t.Errorf("HTTP: %v", err)
	}
}
