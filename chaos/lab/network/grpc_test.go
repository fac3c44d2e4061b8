package network

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestGRPCOverTheLink: an unchanged grpc-go works over a link, takes at least
// the round trip, times out during a cut and works again after it.
func TestGRPCOverTheLink(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, a, b := twoHosts(t)
		check := healthOver(t, a, b)

		start := time.Now()
		if err := check(time.Minute); err != nil {
			t.Fatalf("first call: %v", err)
		}
		if took := time.Since(start); took < 80*ms {
			t.Errorf("first call took %v, less than the round trip", took)
		}
		wantTook(t, 80*ms, func() {
			if err := check(time.Second); err != nil {
				t.Errorf("second call: %v", err)
			}
		})

		n.CutBoth("a", "b", time.Minute)
		healed := time.Now().Add(time.Minute)
		wantTook(t, 2*time.Second, func() {
			if err := check(2 * time.Second); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("call during the cut: %v", err)
			}
		})
		time.Sleep(time.Until(healed))
		if err := check(5 * time.Second); err != nil {
			t.Errorf("call after the heal: %v", err)
		}
	})
}

// healthOver serves gRPC on b and returns a health check made from a.
func healthOver(t *testing.T, a, b *Host) func(timeout time.Duration) error {
	l, err := b.Listen(9000)
	suite.Must(t, err)
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go server.Serve(l)

	client, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return a.DialContext(ctx, "tcp", address)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{
			BaseDelay: 100 * ms, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}}))
	suite.Must(t, err)
	t.Cleanup(func() {
		client.Close()
		server.Stop()
	})
	checks := grpc_health_v1.NewHealthClient(client)
	return func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		_, err := checks.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	n := New()
	defer n.Close()
	l, err := n.Host("b").Listen(80)
	suite.Must(b, err)
	client, err := n.Host("a").DialContext(b.Context(), "tcp", "b:80")
	suite.Must(b, err)
	server, err := l.Accept()
	suite.Must(b, err)
	go func() {
		buf := make([]byte, 100)
		for {
			m, err := server.Read(buf)
			if err != nil {
				return
			}
			server.Write(buf[:m])
		}
	}()
	buf := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		client.Write(buf)
		if _, err := client.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}
