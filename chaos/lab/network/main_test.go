package network

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const ms = time.Millisecond

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair of hosts, 40 ms apart in each direction.
func twoHosts(t *testing.T) (n *Network, a, b *Host) {
	t.Helper()
	n = New()
	t.Cleanup(func() { n.Close() })
	n.SetDelayAll(40 * ms)
	return n, n.Host("a"), n.Host("b")
}

// connect dials b:80 from a and returns both ends.
func connect(t *testing.T, a, b *Host) (client, server net.Conn) {
	t.Helper()
	l, err := b.Listen(80)
	suite.Must(t, err)
	defer l.Close()
	client, err = a.DialContext(context.Background(), "tcp", "b:80")
	suite.Must(t, err)
	server, err = l.Accept()
	suite.Must(t, err)
	return client, server
}

func packetConnOn(t *testing.T, h *Host, port int) net.PacketConn {
	t.Helper()
	c, err := h.ListenPacket(port)
	suite.Must(t, err)
	return c
}

func mustWrite(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
		t.Fatalf("Write(%q) = %d, %v", s, n, err)
	}
}

// wantTook runs f and checks how much virtual time it took.
func wantTook(t *testing.T, want time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took != want {
		t.Errorf("took %v of virtual time, want %v", took, want)
	}
}

func wantTimeout(t *testing.T, err error) {
	t.Helper()
	var ne net.Error
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() {
		t.Errorf("error is %v, want a net.Error timeout that is os.ErrDeadlineExceeded", err)
	}
}
