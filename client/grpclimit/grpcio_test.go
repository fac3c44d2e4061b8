//go:build grpcio

package grpclimit_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/client"
	"github.com/quotad/quotad/client/grpclimit"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// TestGRPCIO: the gRPC library of C, by its Python package, obeys as grpc-go does.
func TestGRPCIO(t *testing.T) {
	for _, c := range []struct {
		retry       time.Duration
		code        string
		sent        string
		calls       int
		least, most float64 // seconds
	}{
		{300 * time.Millisecond, "OK", "none", 2, 0.3, 50},
		{5*time.Second + 1, "RESOURCE_EXHAUSTED", "-1", 1, 0, 5},
		{0, "RESOURCE_EXHAUSTED", "-1", 1, 0, 5},
	} {
		f := &first{many: 1, denied: client.Decision{Limit: "a", RetryAfter: c.retry,
			Reason: quotadv1.Reason_REASON_OVER_LIMIT}}
		said := python(t, listening(t, f))
		var code, sent string
		var took float64
		if _, err := fmt.Sscan(said, &code, &took, &sent); err != nil || code != c.code || sent != c.sent ||
			took < c.least || took > c.most || f.calls != c.calls {
			t.Errorf("after %v: %q, %d calls, want %s, %s and %d", c.retry, said, f.calls, c.code, c.sent, c.calls)
		}
		t.Logf("denied for %v: %s after %.3f s and %d calls, pushback %s", c.retry, code, took, f.calls, sent)
	}
}

// listening returns where a server of health checks listens.
func listening(t *testing.T, c grpclimit.Checker) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	s := grpc.NewServer(grpc.UnaryInterceptor(grpclimit.Unary(c, options)))
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		s.Stop()
		serving.Wait()
	})
	return l.Addr().String()
}

// python runs the client, and returns what it printed.
func python(t *testing.T, at string) string {
	t.Helper()
	packages, err := filepath.Abs(filepath.Join("..", "..", "bin", "grpcio"))
	suite.Must(t, err)
	run := exec.CommandContext(t.Context(), "python3", filepath.Join("testdata", "retry.py"), at)
	run.Env = append(os.Environ(), "PYTHONPATH="+packages)
	run.Stderr = os.Stderr
	said, err := run.Output()
	suite.Must(t, err)
	return string(said)
}
