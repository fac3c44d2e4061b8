package peer

import (
	"context"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const oneWay = 40 * time.Millisecond

// place is a region "eu" that calls, and hosts on which nodes of a region "us" are served. Inside a
// bubble; a goroutine that outlives its test fails it.
type place struct {
	*testing.T
	net    *network.Network
	client *Client
}

// inPlace runs a test in virtual time.
func inPlace(t *testing.T, f func(t *testing.T, p *place)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		n := network.New()
		n.SetDelayAll(oneWay)
		p := &place{t, n, NewClient(n.Host("eu").DialContext, nil)}
		t.Cleanup(func() { _ = n.Close() })
		t.Cleanup(func() { _ = p.client.Close() })
		f(t, p)
	})
}

const port = 9000

// at returns the address of a host's node.
func at(host string) string { return host + ":" + strconv.Itoa(port) }

// serve starts a node on a host; it is closed with the test.
func (p *place) serve(host string, handle Handler) *Server {
	p.Helper()
	return p.serveAs(host, handle, nil)
}

// serveAs is serve with certificates.
func (p *place) serveAs(host string, handle Handler, as *TLS) *Server {
	p.Helper()
	l, err := p.net.Host(host).Listen(port)
	if err != nil {
		p.Fatal(err)
	}
	s := NewServer(Handlers{Exchange: handle}, as)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	p.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			p.Errorf("serve %s: %v", host, err)
		}
	})
	return s
}

// named answers with the name of its node.
func named(node string) Handler {
	return func(context.Context, exchange.Message) (exchange.Reply, error) {
		return exchange.Reply{From: node}, nil
	}
}

// call pings a region and returns who answered.
func (p *place) call(timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	r, err := p.client.Exchange(ctx, "us", exchange.Message{From: "eu", Node: "n1"})
	return r.From, err
}

// mustCall fails the test unless want answers.
func (p *place) mustCall(want string) {
	p.Helper()
	if got, err := p.call(time.Second); err != nil || got != want {
		p.Fatalf("answer of %q, %v; want %q", got, err, want)
	}
}

// recovers pings ten times a second until a call is answered, and returns how long that took.
func (p *place) recovers() time.Duration {
	p.Helper()
	begin := time.Now()
	for time.Since(begin) < time.Minute {
		if _, err := p.call(500 * time.Millisecond); err == nil {
			return time.Since(begin)
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.Fatal("no call was answered within a minute")
	return 0
}
