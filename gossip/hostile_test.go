package gossip

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestStrangersAreNotAdmitted: a node without a key or with another key sees no
// member, is not seen, and its state is not taken in.
func TestStrangersAreNotAdmitted(t *testing.T) {
	key, other := []byte("0123456789abcdef"), []byte("fedcba9876543210")
	for _, tc := range []struct {
		name              string
		key, strangersKey []byte
		admitted          bool
	}{
		{"same key", key, key, true},
		{"no key", key, nil, false},
		{"another key", key, other, false},
		{"a key where none is used", nil, key, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				net := newNetwork(t)
				var nodes []*node
				for _, name := range []string{"a", "b"} {
					nodes = append(nodes, start(t, net, name, func(c *Config) {
						seeds(net, "a")(c)
						c.Keys = keys(tc.key)
					}))
				}
				stranger := start(t, net, "stranger", func(c *Config) {
					seeds(net, "a", "b")(c)
					c.Keys = keys(tc.strangersKey)
				})
				stranger.spread(t, "strange", 1)
				time.Sleep(time.Minute)
				if tc.admitted {
					if err := both(sameView(append(nodes, stranger), "a", "b", "stranger"),
						sameState(nodes, map[string]int{"strange": 1})); err != nil {
						t.Error(err)
					}
					return
				}
				if err := both(sameView(nodes, "a", "b"),
					sameView([]*node{stranger}, "stranger")); err != nil {
					t.Error(err)
				}
				suite.Must(t, sameState(nodes, nil))
			})
		})
	}
}

// TestNonsenseFromTheNetwork: garbage as packets and on streams, changes and states that Merge
// refuses, with and without a key. The cluster goes on.
func TestNonsenseFromTheNetwork(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "encrypted": make([]byte, 16)} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				net := newNetwork(t)
				nodes := []*node{}
				for _, name := range []string{"a", "b"} {
					nodes = append(nodes, start(t, net, name, func(c *Config) {
						seeds(net, "a")(c)
						c.Keys = keys(key)
					}))
				}
				within(t, 5*time.Second, "the cluster to form",
					func() error { return sameView(nodes, "a", "b") })
				shower(t, net.Host("enemy"), nodes[0])
				suite.Must(t, nodes[1].Broadcast("k", []byte("not what Merge wants")))
				time.Sleep(20 * time.Second)
				if nodes[0].Stats().Rejected == 0 {
					t.Error("nothing was rejected")
				}
				nodes[0].spread(t, "x", 1)
				within(t, 2*time.Second, "the cluster to work", func() error {
					return both(sameView(nodes, "a", "b"), sameState(nodes, map[string]int{"x": 1}))
				})
			})
		})
	}
}

// shower sends random bytes, the first of which is each message type in turn.
func shower(t *testing.T, from *network.Host, to *node) {
	t.Helper()
	packets, err := from.ListenPacket(0)
	suite.Must(t, err)
	at := to.cfg.Advertise
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		b := make([]byte, rnd.IntN(200))
		for j := range b {
			b[j] = byte(rnd.Uint32())
		}
		if len(b) > 0 {
			b[0] = byte(i % 16)
		}
		packets.WriteTo(b, net.UDPAddrFromAddrPort(at))
		if i%20 == 0 {
			c, err := from.DialContext(t.Context(), "tcp", at.String())
			suite.Must(t, err)
			c.Write(b)
			c.Close()
		}
		time.Sleep(time.Millisecond)
	}
}

// TestStreamsAreBounded: silent streams are refused beyond a number, for one host and in all, and
// closed after a while.
func TestStreamsAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a := start(t, net, "a", nil)
		const more = 8 // than one host may open
		open := func(host string) {
			for range maxStreamsFrom + more {
				go net.Host(host).DialContext(t.Context(), "tcp", a.cfg.Advertise.String())
			}
			time.Sleep(2 * oneWay)
			synctest.Wait()
		}
		open("enemy")
		if open, refused := a.openStreams(), a.Stats().StreamsRefused; open != maxStreamsFrom ||
			refused != more {
			t.Errorf("%d streams of one host are open and %d refused, want %d and %d", open,
				refused, maxStreamsFrom, more)
		}
		const hosts = maxStreams/maxStreamsFrom + 1
		for i := range hosts - 1 {
			open(fmt.Sprint("enemy ", i))
		}
		if open, refused := a.openStreams(), a.Stats().StreamsRefused; open != maxStreams ||
			refused != maxStreamsFrom+hosts*more {
			t.Errorf("%d streams open and %d refused, want %d and %d", open, refused, maxStreams,
				maxStreamsFrom+hosts*more)
		}
		b := start(t, net, "b", nil)
		if err := a.caller.join(b.cfg.Advertise.String()); err != nil {
			t.Errorf("while others have all streams open, this node cannot open one: %v", err)
		}
		// The two nodes exchange their states over streams now and then: b ends, so that no such
		// stream is open when the minute is over.
		suite.Must(t, b.Close())
		time.Sleep(time.Minute)
		if open := a.openStreams(); open != 0 {
			t.Errorf("%d streams are open after a minute", open)
		}
		if n := len(a.transport.crowds); n != 0 || a.transport.held != 0 {
			t.Errorf("%d hosts and %d bytes are still in the books", n, a.transport.held)
		}
	})
}

func TestDoorkeeper(t *testing.T) {
	good := memberlist.Node{Name: "n", Addr: net.IPv4(10, 0, 0, 1).To4(), Port: 1, PMin: 1, PMax: 5,
		PCur: 2, DMin: 1, DMax: 1, DCur: 1}
	for _, tc := range []struct {
		name   string
		ok     bool
		change func(*memberlist.Node)
	}{
		{"good", true, func(*memberlist.Node) {}},
		{"IPv6", true, func(n *memberlist.Node) { n.Addr = net.IPv6loopback }},
		{"no name", false, func(n *memberlist.Node) { n.Name = "" }},
		{"long name", false, func(n *memberlist.Node) { n.Name = strings.Repeat("n", maxName+1) }},
		{"large meta", false, func(n *memberlist.Node) { n.Meta = make([]byte, maxMeta+1) }},
		{"no address", false, func(n *memberlist.Node) { n.Addr = nil }},
		{"odd address", false, func(n *memberlist.Node) { n.Addr = make([]byte, 7) }},
		{"any address", false, func(n *memberlist.Node) { n.Addr = net.IPv4zero }},
		{"no port", false, func(n *memberlist.Node) { n.Port = 0 }},
		{"protocol too new", false, func(n *memberlist.Node) { n.PMin, n.PCur = 5, 5 }},
		{"protocol too old", false, func(n *memberlist.Node) { n.PMax, n.PCur = 1, 1 }},
		{"protocol outside its range", false, func(n *memberlist.Node) { n.PCur = 9 }},
		{"another dialect", false, func(n *memberlist.Node) { n.DMin, n.DMax, n.DCur = 2, 2, 2 }},
	} {
		n := good
		tc.change(&n)
		if err := (doorkeeper{protocol: 2}).NotifyAlive(&n); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
