package gossip

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// keys are the keys of a test that has one, or none.
func keys(key []byte) [][]byte {
	if key == nil {
		return nil
	}
	return [][]byte{key}
}

// aKey is a key of equal bytes.
func aKey(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// ear counts what is sent, and what of it can be read by anyone.
type ear struct{ sent, plain atomic.Int64 }

// secrets are in every ping, every list of members, and every state of these tests.
var secrets = [][]byte{[]byte("node-"), []byte("meta of"), []byte("spread")}

func (e *ear) hear(b []byte) {
	e.sent.Add(1)
	if slices.ContainsFunc(secrets, func(s []byte) bool { return bytes.Contains(b, s) }) {
		e.plain.Add(1)
	}
}

type heardPackets struct {
	net.PacketConn
	by *ear
}

func (h heardPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	h.by.hear(b)
	return h.PacketConn.WriteTo(b, to)
}

type heardStream struct {
	net.Conn
	by *ear
}

func (h heardStream) Write(b []byte) (int, error) {
	h.by.hear(b)
	return h.Conn.Write(b)
}

type heardStreams struct {
	net.Listener
	by *ear
}

func (h heardStreams) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	return heardStream{c, h.by}, err
}

// overheard has an ear at all that a node sends.
func overheard(by *ear, c *Config) {
	dial := c.Dial
	c.Packets, c.Streams = heardPackets{c.Packets, by}, heardStreams{c.Streams, by}
	c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return heardStream{conn, by}, err
	}
}

// rotation is a cluster whose keys are changed.
type rotation struct {
	*testing.T
	nodes []*node
	want  map[string]int
}

// all gives keys to one node after another, with time enough between them for anybody to be missed.
func (r *rotation) all(keys ...[]byte) {
	r.Helper()
	for _, n := range r.nodes {
		if err := n.SetKeys(keys); err != nil {
			r.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		key := fmt.Sprintf("spread %d", len(r.want))
		r.want[key] = 1
		n.spread(r.T, key, 1)
	}
}

// TestKeysAreRotated: the nodes go from an old key to a new one, one by one. No node loses sight of
// another, and nothing is sent in plain text. Afterwards the old key opens nothing.
func TestKeysAreRotated(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		network, by := newNetwork(t), &ear{}
		old, next := aKey(1), aKey(2)
		r := &rotation{T: t, want: map[string]int{}}
		names := []string{"node-a", "node-b", "node-c"}
		for _, name := range names {
			r.nodes = append(r.nodes, start(t, network, name, func(c *Config) {
				seeds(network, names[0])(c)
				overheard(by, c)
				c.Keys = keys(old)
			}))
		}
		within(t, 15*time.Second, "the cluster to form",
			func() error { return sameView(r.nodes, names...) })

		r.all(old, next)
		r.all(next, old)
		r.all(next)
		within(t, 15*time.Second, "the state to spread", func() error {
			return both(sameView(r.nodes, names...), sameState(r.nodes, r.want))
		})
		for _, n := range r.nodes {
			if n.log.has("member failed") || n.log.has("member left") ||
				strings.Count(n.log.b.String(), "member joined") != 2 {
				t.Errorf("%s lost sight of another:\n%s", n.cfg.Name, n.log.b.String())
			}
		}
		if by.plain.Load() != 0 || by.sent.Load() < 1000 {
			t.Errorf("of %d packets and writes %d could be read by anyone", by.sent.Load(),
				by.plain.Load())
		}
		stranger := start(t, network, "stranger", func(c *Config) {
			seeds(network, names...)(c)
			c.Keys = keys(old)
		})
		time.Sleep(time.Minute)
		if err := both(sameView(r.nodes, names...),
			sameView([]*node{stranger}, "stranger")); err != nil {
			t.Errorf("the old key still opens: %v", err)
		}
	})
}

// TestTheEarHears: without keys the ear can read what is sent, so it would find plain text in the
// test above.
func TestTheEarHears(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		network, by := newNetwork(t), &ear{}
		a := start(t, network, "node-a", func(c *Config) { overheard(by, c) })
		b := start(t, network, "node-b", seeds(network, "node-a"))
		within(t, 15*time.Second, "two to meet",
			func() error { return sameView([]*node{a, b}, "node-a", "node-b") })
		if by.plain.Load() == 0 {
			t.Error("nothing was heard in plain text")
		}
	})
}

// TestSetKeysRefuses: invalid keys change nothing.
func TestSetKeysRefuses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		locked := start(t, network, "locked", func(c *Config) { c.Keys = keys(aKey(1)) })
		plain := start(t, network, "plain", nil)
		for _, test := range []struct {
			node *node
			keys [][]byte
			want string
		}{
			{locked, nil, "restart it without keys"},
			{plain, keys(aKey(1)), "restart it with keys"},
			{plain, nil, "no keys are given"},
			{locked, [][]byte{aKey(1), []byte("short")}, "key 2 of 2 has 5 bytes"},
			{locked, slices.Repeat(keys(aKey(2)), maxKeys+1), "at most 8"},
		} {
			if err := test.node.SetKeys(test.keys); err == nil || !strings.Contains(err.Error(),
				test.want) {
				t.Errorf("%s, %d keys: %v, want %q", test.node.cfg.Name, len(test.keys), err,
					test.want)
			}
		}
		if got := locked.keys.GetKeys(); len(got) != 1 || !bytes.Equal(got[0], aKey(1)) {
			t.Errorf("the keys in force became %v", got)
		}
	})
}

// TestInstallHoldsExactlyTheKeysGiven: whatever keys a ring held before, it then encrypts with the
// first given key and holds the others. Readers of the earlier keys see them unchanged.
func TestInstallHoldsExactlyTheKeysGiven(t *testing.T) {
	some := rapid.SliceOfN(rapid.Map(rapid.ByteRange(1, 6), aKey), 1, maxKeys)
	suite.Check(t, func(t *rapid.T) {
		ring, err := newRing(some.Draw(t, "at first"))
		suite.Must(t, err)
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			given := some.Draw(t, "given")
			reading := ring.GetKeys()
			before := slices.Clone(reading)
			suite.Must(t, install(ring, given))
			if !slices.EqualFunc(reading, before, bytes.Equal) {
				t.Fatal("the keys that a reader holds were changed under its hands")
			}
			held := ring.GetKeys()
			if !bytes.Equal(held[0], given[0]) {
				t.Fatalf("encrypts with %d, want %d", held[0][0], given[0][0])
			}
			for _, k := range held {
				if !holds(given, k) {
					t.Fatalf("still holds %d", k[0])
				}
			}
			for _, k := range given {
				if !holds(held, k) {
					t.Fatalf("does not hold %d", k[0])
				}
			}
		}
	})
}
