package gossip

import (
	"bytes"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// killer is a user message of 258 bytes: a change whose key is said to have 255 bytes, and has.
func killer() []byte {
	return append([]byte{8, kindChange, 255}, bytes.Repeat([]byte{'0'}, 255)...)
}

// TestOnePacketEndsNoNode: a packet holds a change with the longest key that one byte can announce.
// Anybody who reaches the port can send it. The node reads the whole key and goes on.
func TestOnePacketEndsNoNode(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		nodes := cluster(t, network, "a", "b")
		packets, err := network.Host("enemy").ListenPacket(0)
		suite.Must(t, err)
		if _, err := packets.WriteTo(killer(),
			net.UDPAddrFromAddrPort(nodes[0].cfg.Advertise)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if nodes[0].Stats().Rejected != 1 {
			t.Errorf("%d messages were rejected, want the enemy's", nodes[0].Stats().Rejected)
		}
		nodes[0].spread(t, "x", 1)
		within(t, 2*time.Second, "the cluster to work", func() error {
			return both(sameView(nodes, "a", "b"), sameState(nodes, map[string]int{"x": 1}))
		})
	})
}

// fragile is a state that panics over what it is given, and when it is asked for.
type fragile struct{ *maxima }

func (f fragile) Merge(b []byte) (bool, error) {
	if bytes.Contains(b, []byte("panic")) {
		panic("over what was sent")
	}
	return f.maxima.Merge(b)
}

func (f fragile) MarshalBinary() ([]byte, error) {
	if f.clone()["marshal"] == 13 {
		panic("over what is held")
	}
	return f.maxima.MarshalBinary()
}

// TestPanicsEndNoNode: Merge, MarshalBinary and OnChange panic, each in a goroutine that is not
// ours. The panics are counted, and the node goes on.
func TestPanicsEndNoNode(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		var counted atomic.Int64
		a := start(t, network, "a", func(c *Config) {
			c.Recovered, c.State = func(string, any) { counted.Add(1) }, fragile{c.State.(*maxima)}
			c.OnChange = func([]Member) { panic("over who is there") }
		})
		b := start(t, network, "b", seeds(network, "a"))
		nodes := []*node{a, b}
		within(t, 5*time.Second, "the cluster to form",
			func() error { return sameView(nodes, "a", "b") })
		before := counted.Load()
		if before == 0 {
			t.Error("OnChange did not panic")
		}
		if err := b.Broadcast("k", []byte(`{"panic": 1}`)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if counted.Load() == before {
			t.Error("Merge did not panic")
		}
		a.set("marshal", 13)
		before = counted.Load()
		time.Sleep(20 * time.Second)
		if counted.Load() == before {
			t.Error("MarshalBinary did not panic")
		}
		a.set("marshal", 14)
		b.spread(t, "x", 1)
		within(t, 15*time.Second, "the cluster to work", func() error {
			return both(sameView(nodes, "a", "b"),
				sameState(nodes, map[string]int{"x": 1, "marshal": 14}))
		})
	})
}
