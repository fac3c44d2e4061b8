package network

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
)

func TestPacketTakesTheDelayOfItsDirection(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, a, b := twoHosts(t)
		n.SetDelay("b", "a", 70*ms)
		pa, pb := packetConnOn(t, a, 7946), packetConnOn(t, b, 7946)
		buf := make([]byte, 16)
		for _, step := range []struct {
			from, to net.PacketConn
			want     time.Duration
		}{{pa, pb, 40 * ms}, {pb, pa, 70 * ms}, {pa, pa, 0}} {
			wantTook(t, step.want, func() {
				if _, err := step.from.WriteTo([]byte("hello"), step.to.LocalAddr()); err != nil {
					t.Fatal(err)
				}
				m, from, err := step.to.ReadFrom(buf)
				if err != nil || string(buf[:m]) != "hello" ||
					from.String() != step.from.LocalAddr().String() {
					t.Fatalf("read %q from %v, %v", buf[:m], from, err)
				}
			})
		}
	})
}

// TestPacketDroppedByCut: a packet is lost if the link is cut as it leaves or
// as it arrives, and in that direction only.
func TestPacketDroppedByCut(t *testing.T) {
	for _, tc := range []struct {
		name          string
		cutAt, cutFor time.Duration // the packet leaves at 100 ms, arrives at 140 ms
		delivered     bool
	}{
		{"before", 0, 50 * ms, true},
		{"as it leaves", 90 * ms, 20 * ms, false},
		{"on its way only", 110 * ms, 20 * ms, true},
		{"as it arrives", 130 * ms, 20 * ms, false},
		{"after", 150 * ms, 50 * ms, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n, a, b := twoHosts(t)
				pa, pb := packetConnOn(t, a, 1), packetConnOn(t, b, 1)
				time.AfterFunc(tc.cutAt, func() { n.Cut("a", "b", tc.cutFor) })
				time.AfterFunc(100*ms, func() {
					pa.WriteTo([]byte("x"), pb.LocalAddr())
					pb.WriteTo([]byte("y"), pa.LocalAddr())
				})
				time.Sleep(time.Second)
				there, back := n.Stats("a", "b"), n.Stats("b", "a")
				want := Stats{PacketsDelivered: 1}
				if back != want {
					t.Errorf("other direction: %+v, want %+v", back, want)
				}
				if !tc.delivered {
					want = Stats{PacketsDropped: 1}
				}
				if there != want {
					t.Errorf("cut direction: %+v, want %+v", there, want)
				}
			})
		})
	}
}

func TestPacketQueuesAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, a, b := twoHosts(t)
		pa, pb := packetConnOn(t, a, 1), packetConnOn(t, b, 1)
		const sent = maxPacketsOnWire + 10
		for range sent {
			pa.WriteTo([]byte("x"), pb.LocalAddr())
		}
		if got := n.Stats("a", "b").PacketsDropped; got != 10 {
			t.Errorf("%d dropped by the link's bound, want 10", got)
		}
		time.Sleep(time.Second)
		want := Stats{
			PacketsDelivered: receiveQueue,
			PacketsDropped:   sent - receiveQueue,
		}
		if got := n.Stats("a", "b"); got != want {
			t.Errorf("stats %+v, want %+v", got, want)
		}
	})
}

func TestPacketsKeepTheirOrderAndTheBuffersStayTheCallers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, a, b := twoHosts(t)
		pa, pb := packetConnOn(t, a, 1), packetConnOn(t, b, 1)
		buf := make([]byte, 8)
		for i := range 100 {
			n.SetDelay("a", "b", time.Duration(100-i)*ms) // would overtake
			m := copy(buf, fmt.Sprint(i))
			pa.WriteTo(buf[:m], pb.LocalAddr())
		}
		for i := range 100 {
			m, _, err := pb.ReadFrom(buf)
			if err != nil || string(buf[:m]) != fmt.Sprint(i) {
				t.Fatalf("packet %d is %q, %v", i, buf[:m], err)
			}
		}
	})
}

func TestPacketsSentBeforeCloseArrive(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, a, b := twoHosts(t)
		pa, pb := packetConnOn(t, a, 1), packetConnOn(t, b, 1)
		pa.WriteTo([]byte("goodbye"), pb.LocalAddr())
		pa.Close()
		buf := make([]byte, 4)
		if m, _, err := pb.ReadFrom(buf); err != nil || string(buf[:m]) != "good" {
			t.Errorf("read %q, %v, want the part that fits", buf[:m], err)
		}
	})
}

func TestPacketConnErrors(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, a, b := twoHosts(t)
		pa, pb := packetConnOn(t, a, 1), packetConnOn(t, b, 0)

		pb.SetReadDeadline(time.Now().Add(5 * ms))
		wantTook(t, 5*ms, func() {
			_, _, err := pb.ReadFrom(nil)
			wantTimeout(t, err)
		})
		pb.SetWriteDeadline(time.Now())
		_, err := pb.WriteTo([]byte("x"), pa.LocalAddr())
		wantTimeout(t, err)
		if err := pb.SetDeadline(time.Time{}); err != nil {
			t.Error(err)
		}
		if _, err := pb.WriteTo([]byte("x"), pa.LocalAddr()); err != nil {
			t.Error(err)
		}
		if _, err := pa.WriteTo(make([]byte, maxPayload+1), pb.LocalAddr()); !errors.Is(err,
			syscall.EMSGSIZE) {
			t.Errorf("oversized packet: %v", err)
		}
		if _, err := pa.WriteTo([]byte("x"), &net.TCPAddr{}); err == nil {
			t.Error("a TCP address was taken as the destination of a packet")
		}
		if _, err := pa.WriteTo([]byte("x"), &net.UDPAddr{IP: b.IP().AsSlice(),
			Port: 9}); err != nil {
			t.Errorf("nobody listening: %v", err)
		}
		if _, err := a.ListenPacket(1); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("port taken: %v", err)
		}

		read := make(chan error, 1)
		go func() { _, _, err := pb.ReadFrom(nil); read <- err }()
		synctest.Wait()
		pb.Close()
		pb.Close()
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Errorf("read while closing: %v", err)
		}
		if _, err := pb.WriteTo(nil, pa.LocalAddr()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after close: %v", err)
		}
		if err := pb.SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("deadline after close: %v", err)
		}
		time.Sleep(time.Second)
		if got := n.Stats("a", "b").PacketsDropped; got != 1 {
			t.Errorf("%d packets dropped for want of a listener, want 1", got)
		}
	})
}
