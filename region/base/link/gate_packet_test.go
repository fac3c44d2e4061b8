package link

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestGateLosesPackets(t *testing.T) {
	clock := newManualClock()
	g := newGate(clock)
	mine, theirs := g.PacketConn(packetsHere(t)), packetsHere(t)
	send := func(from, to net.PacketConn, text string) {
		t.Helper()
		if n, err := from.WriteTo([]byte(text), to.LocalAddr()); n != len(text) || err != nil {
			t.Fatalf("WriteTo(%q) = %d, %v", text, n, err)
		}
	}
	want := func(at net.PacketConn, text string) {
		t.Helper()
		b := make([]byte, 16)
		if n, _, err := at.ReadFrom(b); string(b[:n]) != text || err != nil {
			t.Fatalf("read %q, %v; want %q", b[:n], err, text)
		}
	}
	g.Cut(there, Out, time.Second)
	send(mine, theirs, "lost")
	send(theirs, mine, "in")
	want(mine, "in")
	clock.pass(time.Second)
	send(mine, theirs, "out")
	want(theirs, "out")
	if got := g.Stats().PacketsDropped; got != 1 {
		t.Errorf("%d packets dropped, want 1", got)
	}

	g.Cut(there, In, time.Minute)
	send(theirs, mine, "lost")
	received := make(chan outcome, 1)
	go func() {
		b := make([]byte, 16)
		n, _, err := mine.ReadFrom(b)
		received <- outcome{string(b[:n]), err}
	}()
	for g.Stats().PacketsDropped < 2 { // until the reader has met the first
		runtime.Gosched()
	}
	g.Heal()
	send(theirs, mine, "in again")
	wantRead(t, received, "in again")
}

func packetsHere(t *testing.T) net.PacketConn {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	suite.Must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}
