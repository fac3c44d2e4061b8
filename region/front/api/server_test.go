package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServer returns a server that is closed at the end of the test.
func newServer(t testing.TB, n Node, log *slog.Logger) *Server {
	t.Helper()
	s := New(n, log, Options{})
	t.Cleanup(func() { suite.Must(t, s.Close()) })
	return s
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
		s := New(node, fronts.Quiet(), Options{})
		fronts.Serve(t, map[int]func(net.Listener) error{fronts.RPCPort: s.Callers.ServeGRPC,
			fronts.WebPort: s.Callers.ServeHTTP, fronts.AdminPort: s.Operators.Serve}, s.Close,
			func(c *fronts.Client) { f(t, &front{s, c}) })
	})
}

// slow is a node whose decisions take a while.
func slow(d time.Duration) *fronts.Node {
	return &fronts.Node{
		Decision: fronts.Allowed(),
		Wait: func(ctx context.Context, _ admit.Request) error {
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
		_, rpc = quotadv1.NewQuotaServiceClient(s.RPC).Check(t.Context(), &quotadv1.CheckRequest{Domain: "api"})
	})
	done.Go(func() {
		r, err := s.Web.Post("http://"+s.At+"/v1/check", "application/json", strings.NewReader(fronts.Request))
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
		watch, err := healthv1.NewHealthClient(s.RPC).Watch(t.Context(), &healthv1.HealthCheckRequest{})
		suite.Must(t, err)
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
