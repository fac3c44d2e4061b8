package gossip

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// flakyPackets and flakyStreams fail a number of times before they work, as sockets do for want of
// memory or file descriptors.
type flakyPackets struct {
	net.PacketConn
	failures int
}

func (f *flakyPackets) ReadFrom(b []byte) (int, net.Addr, error) {
	if f.failures--; f.failures >= 0 {
		return 0, nil, errors.New("no memory")
	}
	return f.PacketConn.ReadFrom(b)
}

type flakyStreams struct {
	net.Listener
	failures int
}

func (f *flakyStreams) Accept() (net.Conn, error) {
	if f.failures--; f.failures >= 0 {
		return nil, errors.New("too many open files")
	}
	return f.Listener.Accept()
}

func TestSocketsThatFailForAWhileAreUsedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		a := start(t, network, "a", func(c *Config) {
			c.Packets = &flakyPackets{c.Packets, 10}
			c.Streams = &flakyStreams{c.Streams, 10}
		})
		b := start(t, network, "b", seeds(network, "a"))
		within(t, 10*time.Second, "the sockets to recover", func() error {
			return sameView([]*node{a, b}, "a", "b")
		})
		time.Sleep(time.Minute)
		if err := sameView([]*node{a, b}, "a", "b"); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseWhileSocketsFail: the pause between attempts ends with the node.
func TestCloseWhileSocketsFail(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := start(t, newNetwork(t), "a", func(c *Config) {
			c.Packets = &flakyPackets{c.Packets, 1 << 30}
			c.Streams = &flakyStreams{c.Streams, 1 << 30}
		})
		time.Sleep(10*time.Second + time.Millisecond)
		begin := time.Now()
		a.Close()
		if took := time.Since(begin); took != 0 {
			t.Errorf("closing a node that never met another took %v", took)
		}
	})
}

// TestTransportAfterShutdown: nothing goes out, and no connection is kept.
func TestTransportAfterShutdown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		cfg, _ := config(t, network, "a")
		tr := newTransport(cfg.withDefaults(), nil)
		b, err := network.Host("b").Listen(1)
		suite.Must(t, err)
		conn, err := tr.DialTimeout(b.Addr().String(), time.Second)
		suite.Must(t, err)
		for range 2 {
			suite.Must(t, tr.Shutdown())
		}
		if _, err := conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write: %v", err)
		}
		if _, err := tr.WriteTo([]byte("x"), b.Addr().String()); err != net.ErrClosed {
			t.Errorf("packet: %v, want net.ErrClosed in plain sight", err)
		}
		if _, err := tr.DialTimeout(b.Addr().String(), time.Second); err == nil {
			t.Error("dialed after the shutdown")
		}
		late, err := network.Host("a").DialContext(t.Context(), "tcp", b.Addr().String())
		suite.Must(t, err)
		if _, err := tr.track(late, false); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a connection made during the shutdown: %v", err)
		}
		if _, err := tr.WriteTo(nil, "nonsense"); err == nil {
			t.Error("a packet to nowhere was sent")
		}
	})
}
