package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/network"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
)

// front is a server on a host of a network in memory, and a client on another.
type front struct {
	*Server
	rpc    *grpc.ClientConn
	web    *http.Client
	client *network.Host
	at     string // host:port of HTTP
	// adminAt is host:port of the admin listener.
	adminAt string
}

// served runs f with a server in a bubble of virtual time.
func served(t *testing.T, node *fakeNode, f func(t *testing.T, s *front)) {
	t.Helper()
	servedWith(t, node, Options{}, f)
}

// servedWith is served for a server with options.
func servedWith(t *testing.T, node *fakeNode, o Options, f func(t *testing.T, s *front)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		network := network.New()
		defer network.Close()
		server, client := network.Host("server"), network.Host("client")
		s := &front{Server: New(node, quiet(), o), client: client}
		var serving sync.WaitGroup
		defer serving.Wait()
		for port, serve := range map[int]func(net.Listener) error{8081: s.ServeGRPC, 8080: s.ServeHTTP,
			8083: s.ServeAdmin} {
			l, err := server.Listen(port)
			if err != nil {
				t.Fatal(err)
			}
			serving.Go(func() {
				if err := serve(l); err != nil {
					t.Errorf("serving on %d ended with %v", port, err)
				}
			})
		}
		defer s.Close()
		s.at, s.adminAt = fmt.Sprintf("%s:8080", server.IP()), fmt.Sprintf("%s:8083", server.IP())
		transport := &http.Transport{DialContext: client.DialContext}
		defer transport.CloseIdleConnections()
		s.web = &http.Client{Transport: transport}
		var err error
		s.rpc, err = grpc.NewClient(fmt.Sprintf("passthrough:///%s:8081", server.IP()), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return client.DialContext(ctx, "tcp", address)
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer s.rpc.Close()
		f(t, s)
	})
}

// raw sends bytes over its own connection. It returns what comes back until the connection ends,
// and how long that took.
func (s *front) raw(t *testing.T, sent string) (string, time.Duration) {
	t.Helper()
	conn, err := s.client.DialContext(t.Context(), "tcp", s.at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	start := time.Now()
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(got), time.Since(start)
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
			served(t, &fakeNode{}, func(t *testing.T, s *front) {
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

// health asks for the status of a service.
func (s *front) serving(t *testing.T, service string) healthv1.HealthCheckResponse_ServingStatus {
	t.Helper()
	got, err := healthv1.NewHealthClient(s.rpc).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status
}

const quotaService = "quotad.v1.QuotaService"

// TestHealthFollowsReadiness: questions about health are answered with the present state, and
// watchers are updated within readyEvery.
func TestHealthFollowsReadiness(t *testing.T) {
	node := &fakeNode{}
	node.setReady(errors.New("not open"))
	served(t, node, func(t *testing.T, s *front) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		long := &healthv1.HealthCheckRequest{Service: strings.Repeat("s", maxServiceName+1)}
		refused, err := healthv1.NewHealthClient(s.rpc).Watch(ctx, long)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := refused.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a name of %d bytes: %v", maxServiceName+1, err)
		}
		watch, err := healthv1.NewHealthClient(s.rpc).Watch(ctx, &healthv1.HealthCheckRequest{Service: quotaService})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			change func()
			want   healthv1.HealthCheckResponse_ServingStatus
		}{
			{func() {}, healthv1.HealthCheckResponse_NOT_SERVING},
			{func() { node.setReady(nil) }, healthv1.HealthCheckResponse_SERVING},
			{func() { node.setReady(errors.New("lost")) }, healthv1.HealthCheckResponse_NOT_SERVING},
			{func() { node.setReady(nil) }, healthv1.HealthCheckResponse_SERVING},
			{s.Drain, healthv1.HealthCheckResponse_NOT_SERVING},
		} {
			start := time.Now()
			c.change()
			seen, err := watch.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); seen.Status != c.want || took > readyEvery {
				t.Errorf("a watcher sees %v after %v, want %v within %v", seen.Status, took, c.want, readyEvery)
			}
		}
		node.setReady(errors.New("lost"))
		node.setReady(nil)
		for _, service := range []string{"", quotaService} {
			if got := s.serving(t, service); got != healthv1.HealthCheckResponse_NOT_SERVING {
				t.Errorf("%q of a draining server is %v", service, got)
			}
		}
	})
	served(t, node, func(t *testing.T, s *front) {
		for _, service := range []string{"", quotaService} {
			node.setReady(nil)
			if got := s.serving(t, service); got != healthv1.HealthCheckResponse_SERVING {
				t.Errorf("%q of a ready node is %v", service, got)
			}
			node.setReady(errors.New("lost"))
			if got := s.serving(t, service); got != healthv1.HealthCheckResponse_NOT_SERVING {
				t.Errorf("%q of a node that is not ready is %v", service, got)
			}
		}
		list, err := healthv1.NewHealthClient(s.rpc).List(t.Context(), &healthv1.HealthListRequest{})
		if err != nil || list.Statuses[quotaService].GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
			t.Errorf("the list is %v, %v", list, err)
		}
		_, err = healthv1.NewHealthClient(s.rpc).Check(t.Context(), &healthv1.HealthCheckRequest{Service: "other"})
		if status.Code(err) != codes.NotFound {
			t.Errorf("an unknown service is %v, want NotFound", err)
		}
	})
}

// slow is a node whose decisions take a while.
func slow(d time.Duration) *fakeNode {
	return &fakeNode{
		decision: allowed(),
		wait: func(ctx context.Context, _ admit.Request) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
}

// calls makes one call over gRPC and one over HTTP, and waits until both are with the node. The
// returned function waits until they end.
func (s *front) calls(t *testing.T) (ends func() (web int, rpc error)) {
	t.Helper()
	var done sync.WaitGroup
	var rpc error
	var web int
	done.Go(func() {
		_, rpc = quotadv1.NewQuotaServiceClient(s.rpc).Check(t.Context(), &quotadv1.CheckRequest{Domain: "api"})
	})
	done.Go(func() {
		r, err := s.web.Post("http://"+s.at+"/v1/check", "application/json", strings.NewReader(aRequest))
		if err == nil {
			web = r.StatusCode
			_ = r.Body.Close()
		}
	})
	synctest.Wait()
	return func() (int, error) { done.Wait(); return web, rpc }
}

// TestShutdownWaits: calls under way are answered, and a watcher of health does not delay the end.
func TestShutdownWaits(t *testing.T) {
	served(t, slow(3*time.Second), func(t *testing.T, s *front) {
		watch, err := healthv1.NewHealthClient(s.rpc).Watch(t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
		ends := s.calls(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("shutdown took %v for calls of 3 s", took)
		}
		if web, rpc := ends(); rpc != nil || web != 200 {
			t.Errorf("the calls under way ended with %v and %d", rpc, web)
		}
	})
}

// TestShutdownCutsOff: when the time is up, the calls still under way end.
func TestShutdownCutsOff(t *testing.T) {
	served(t, slow(time.Hour), func(t *testing.T, s *front) {
		ends := s.calls(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shutdown: %v, want that its time was up", err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("shutdown took %v, want 10 s", took)
		}
		if web, rpc := ends(); status.Code(rpc) != codes.Unavailable || web != 0 {
			t.Errorf("the calls cut off ended with %v and %d", rpc, web)
		}
	})
}

// TestCloseEndsAtOnce: Close ends the server at once, and may be called again.
func TestCloseEndsAtOnce(t *testing.T) {
	served(t, slow(time.Hour), func(t *testing.T, s *front) {
		ends := s.calls(t)
		start := time.Now()
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if web, rpc := ends(); status.Code(rpc) != codes.Unavailable || web != 0 || time.Since(start) > time.Second {
			t.Errorf("the calls cut off ended with %v and %d after %v", rpc, web, time.Since(start))
		}
	})
}

// TestCallerGivesUp: when its connection ends, the context of an HTTP call ends, also at the node.
func TestCallerGivesUp(t *testing.T) {
	gone := make(chan error, 1)
	node := &fakeNode{wait: func(ctx context.Context, _ admit.Request) error {
		<-ctx.Done()
		gone <- ctx.Err()
		return ctx.Err()
	}}
	served(t, node, func(t *testing.T, s *front) {
		conn, err := s.client.DialContext(t.Context(), "tcp", s.at)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/check HTTP/1.1\r\nHost: node\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(aRequest), aRequest)
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
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s := newServer(t, &fakeNode{}, quiet())
	if err := s.ServeGRPC(l); !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "serve gRPC on "+l.Addr().String()) {
		t.Errorf("gRPC: %v", err)
	}
	if err := s.ServeHTTP(l); !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "serve HTTP on "+l.Addr().String()) {
		t.Errorf("HTTP: %v", err)
	}
}
