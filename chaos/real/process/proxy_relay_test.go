package process

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// standIn stands for a node behind a relay: it has the node's sockets, and nothing else.
type standIn struct {
	ip, relay netip.Addr
	packets   *net.UDPConn
	streams   net.Listener // of the peer port
}

// standIns makes a node for each of some regions, with a relay.
func standIns(t *testing.T, regions ...string) (*Lines, []standIn) {
	t.Helper()
	block, err := reserve(t)
	suite.Must(t, err)
	l := startLines(t, 1)
	all := make([]standIn, len(regions))
	for i, region := range regions {
		s := &all[i]
		s.ip = netip.AddrFrom4([4]byte{127, block, byte(i), 11})
		s.relay = relayFor(s.ip)
		s.packets, err = net.ListenUDP("udp",
			net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.ip, gossipPort)))
		suite.Must(t, err)
		t.Cleanup(func() { s.packets.Close() })
		s.streams, err = net.Listen("tcp", netip.AddrPortFrom(s.ip, peerPort).String())
		suite.Must(t, err)
		t.Cleanup(func() { s.streams.Close() })
		suite.Must(t, l.add(region, s.relay, s.ip))
	}
	return l, all
}

func (s standIn) send(t *testing.T, text string, to netip.AddrPort) {
	t.Helper()
	_, err := s.packets.WriteToUDPAddrPort([]byte(text), to)
	suite.Must(t, err)
}

// receive waits for a packet, and returns where it came from.
func (s standIn) receive(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	b := make([]byte, 100)
	suite.Must(t, s.packets.SetReadDeadline(time.Now().Add(suite.Patience)))
	n, from, err := s.packets.ReadFromUDPAddrPort(b)
	if err != nil || string(b[:n]) != text {
		t.Fatalf("received %q, %v; want %q", b[:n], err, text)
	}
	return from
}

// call connects to the peer port of another's relay.
func (s standIn) call(t *testing.T, to standIn) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: s.ip.AsSlice()}}
	c, err := d.DialContext(t.Context(), "tcp", netip.AddrPortFrom(to.relay, peerPort).String())
	suite.Must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func (s standIn) accept(t *testing.T) net.Conn {
	t.Helper()
	c, err := s.streams.Accept()
	suite.Must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// TestRelaysHandOn: what one node sends to the relay of another arrives from the relay of the
// first, so that answers also go through a relay.
func TestRelaysHandOn(t *testing.T) {
	_, nodes := standIns(t, "us", "eu")
	us, eu := nodes[0], nodes[1]
	us.send(t, "ping", netip.AddrPortFrom(eu.relay, gossipPort))
	from := eu.receive(t, "ping")
	if from.Addr() != us.relay {
		t.Errorf("the packet came from %s, not from the relay of us", from)
	}
	eu.send(t, "ack", from)
	if from := us.receive(t, "ack"); from.Addr() != eu.relay {
		t.Errorf("the answer came from %s, not from the relay of eu", from)
	}

	c := us.call(t, eu)
	// The call exists once the caller has sent something and a round trip is over.
	say(t, c, "hello")
	there := eu.accept(t)
	wantHeard(t, there, "hello")
	if ip := there.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(); ip != us.relay {
		t.Errorf("the call came from %s, not from the relay of us", ip)
	}
	say(t, there, "world")
	wantHeard(t, c, "world")
	suite.Must(t, there.Close())
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the end of a stream arrives as %v", err)
	}
}

// TestRelaysCut: cuts are of one direction and one protocol.
func TestRelaysCut(t *testing.T) {
	l, nodes := standIns(t, "us", "eu")
	us, eu := nodes[0], nodes[1]
	l.Set("us", "eu", Fault{CutUDP: true})
	us.send(t, "lost", netip.AddrPortFrom(eu.relay, gossipPort))
	suite.Eventually(t, "a packet is lost", func() bool { return l.Stats().Lost == 1 })
	eu.send(t, "back", netip.AddrPortFrom(us.relay, gossipPort))
	us.receive(t, "back")
	c := us.call(t, eu)
	say(t, c, "a stream is not cut")
	wantHeard(t, eu.accept(t), "a stream is not cut")

	l.Set("us", "eu", Fault{CutTCP: true})
	us.send(t, "not cut", netip.AddrPortFrom(eu.relay, gossipPort))
	eu.receive(t, "not cut")
	c = eu.call(t, us) // a call needs both directions
	say(t, c, "late")
	suite.Eventually(t, "a stream stands", func() bool { return l.Stats().Stalled > 0 })
	l.Set("us", "eu", Fault{})
	wantHeard(t, us.accept(t), "late")
	if got := l.Fault("us", "eu"); got != (Fault{}) {
		t.Errorf("after the heal there is %+v", got)
	}
}

// TestRelaysTurnAway: callers that are not nodes of the fleet are recognised by their address and
// refused.
func TestRelaysTurnAway(t *testing.T) {
	_, nodes := standIns(t, "us")
	c, err := net.Dial("tcp", netip.AddrPortFrom(nodes[0].relay, peerPort).String())
	suite.Must(t, err)
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a stranger was let in")
	}
}
