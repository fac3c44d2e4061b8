package region

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/gossip"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
)

// metaOf returns what a node of that name would say about itself.
func metaOf(t testing.TB, region, node, address string) []byte {
	t.Helper()
	b, err := proto.Marshal(&hintv1.Node{Region: region, Node: node, Peer: address})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMembersOfAKnownFormOnly: a member's name must be REGION/NODE with a region of the document.
// It must say the same name about itself, and no address or one that can be called.
func TestMembersOfAKnownFormOnly(t *testing.T) {
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere, "name: a, limit: 10, window: 1s"))
	long := strings.Repeat("x", 64)
	for name, c := range map[string]struct {
		name string
		meta []byte
		ok   bool
	}{
		"a node": {"there/n1", metaOf(t, "there", "n1", "10.0.0.1:8082"), true},
		"a mate by name": {"here/n2", metaOf(t, "here", "n2", "node.example:8082"),
			true},
		"without an address": {"there/n1", metaOf(t, "there", "n1", ""), true},
		"of IPv6":            {"there/n1", metaOf(t, "there", "n1", "[::1]:8082"), true},
		"of another region": {"elsewhere/n1", metaOf(t, "elsewhere", "n1", "10.0.0.1:8082"),
			false},
		"without a region": {"n1", metaOf(t, "", "n1", "10.0.0.1:8082"), false},
		"of two slashes": {"there/n1/n2", metaOf(t, "there", "n1/n2", "10.0.0.1:8082"),
			false},
		"with escape codes": {"there/\x1b[31mn1", metaOf(t, "there", "\x1b[31mn1",
			"10.0.0.1:8082"), false},
		"of a long name": {"there/" + long, metaOf(t, "there", long, "10.0.0.1:8082"),
			false},
		"that says another name": {"there/n1", metaOf(t, "there", "n2", "10.0.0.1:8082"), false},
		"of nonsense":            {"there/n1", []byte{0xff}, false},
		"that says nothing":      {"there/n1", nil, false},
		"without a port":         {"there/n1", metaOf(t, "there", "n1", "10.0.0.1"), false},
		"of port 0":              {"there/n1", metaOf(t, "there", "n1", "10.0.0.1:0"), false},
		"of a long address": {"there/n1",
			metaOf(t, "there", "n1", strings.Repeat("a", maxAddressBytes)+":8082"), false},
		"with escapes in its place": {"there/n1", metaOf(t, "there", "n1", "\x1b[31m:8082"), false},
	} {
		if _, err := n.admit(gossip.Member{Name: c.name, Meta: c.meta}); (err == nil) != c.ok {
			t.Errorf("a member %s: %v", name, err)
		}
	}
}

// noState is the gossip state of a member that has nothing to say.
type noState struct{}

func (noState) MarshalBinary() ([]byte, error) { return nil, nil }
func (noState) Merge([]byte) (bool, error)     { return false, nil }

// invented starts gossip members that are not nodes, each on its own host that answers gossip but
// no calls.
func (c *cluster) invented(region string, n int) {
	c.t.Helper()
	for i := range n {
		name := fmt.Sprintf("invented-%d", i)
		nowhere := c.network.Host("nowhere-" + name)
		c.network.Isolate(nowhere.Name(), time.Hour) // calls to it time out
		c.gossips(region, name, nowhere.IP())
	}
}

// gossips starts a gossip member that is not a node, and says that it is called at an address.
func (c *cluster) gossips(region, name string, called netip.Addr) {
	c.t.Helper()
	host := c.network.Host(name)
	packets, err := host.ListenPacket(gossipPort)
	if err != nil {
		c.t.Fatal(err)
	}
	streams, err := host.Listen(gossipPort)
	if err != nil {
		c.t.Fatal(err)
	}
	g, err := gossip.Start(gossip.Config{Name: region + "/" + name,
		Meta:    metaOf(c.t, region, name, netip.AddrPortFrom(called, peerPort).String()),
		Packets: packets, Streams: streams, Dial: host.DialContext,
		Advertise: netip.AddrPortFrom(host.IP(), gossipPort),
		Seeds:     []string{c.seed}, State: noState{}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = g.Close() })
}

// TestInventedNodesDegradeNobody: invented members of a region answer gossip, and name addresses at
// which nobody answers calls. Then the region's true node is silent for five seconds. Soon after
// that no region is degraded, though the invented members are still there. Members above the bound
// are not accepted.
func TestInventedNodesDegradeNobody(t *testing.T) {
	suite.LongWithRace(t)
	d := documents.Parse(t, 1, halves, "name: second, limit: 100, window: 1s")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		c.invented("eu", fewestMembers+6)
		c.within(time.Minute, "the invented to be members",
			func() bool { return len(us.Members()) == fewestMembers+1 })
		c.within(time.Minute, "the others to be refused", func() bool {
			return us.series(t)["quotad_gossip_refused_total{what=members}"] > 0
		})
		if !slices.Contains(us.Members(), "eu/n1") {
			t.Fatalf("the true node is no member: %v", us.Members())
		}
		for range 40 {
			time.Sleep(100 * time.Millisecond)
			if us.agrees(t, "eu").Degraded {
				t.Fatal("degraded while the true node answers")
			}
		}
		c.network.CutBoth("us/n1", "eu/n1", 5*time.Second)
		time.Sleep(5 * time.Second)
		if !us.agrees(t, "eu").Degraded {
			t.Error("not degraded during the pause")
		}
		const soon = exchange.DegradedAfter * time.Microsecond
		c.within(soon, "the true node to be called again",
			func() bool { return !us.agrees(t, "eu").Degraded })
		for range 40 {
			time.Sleep(100 * time.Millisecond)
			if us.agrees(t, "eu").Degraded {
				t.Fatal("degraded again")
			}
		}
	})
}

// TestNodesSaidToBeGoneAreStillCalled: everybody who can gossip can claim that a node is gone and
// name others. An address that answered lately is kept until it has not answered for half a minute.
func TestNodesSaidToBeGoneAreStillCalled(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: second, limit: 100, window: 1s")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us, eu := c.running["us/n1"], c.running["eu/n1"].config.PeerAdvertise
		us.membersChanged([]gossip.Member{{Name: "eu/evil", Meta: metaOf(t, "eu", "evil",
			"10.9.9.9:1")}})
		if got := us.peers.Lately("eu"); !slices.Equal(got, []string{eu}) {
			t.Errorf("of eu %q answered lately, want %s", got, eu)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := us.peers.Exchange(ctx, "eu", exchange.Message{From: "us",
			Node: "n1"}); err != nil {
			t.Errorf("the true node is not called: %v", err)
		}
	})
}

// FuzzMember: whatever a member's name and its data are, it is refused or has the form that nodes
// have.
func FuzzMember(f *testing.F) {
	f.Add("there/n1", metaOf(f, "there", "n1", "10.0.0.1:8082"))
	f.Add("here/\x1b[31m", metaOf(f, "here", "x", "[::1]:1"))
	f.Add("there/n1/n2", []byte{0x0a, 0xff})
	n := unstarted(f, 1, documents.Parse(f, 1, hereAndThere, "name: a, limit: 10, window: 1s"))
	f.Fuzz(func(t *testing.T, name string, meta []byte) {
		region, err := n.admit(gossip.Member{Name: name, Meta: meta})
		if err != nil {
			return
		}
		is, err := memberOf(gossip.Member{Name: name, Meta: meta})
		if err != nil || is.Region != region || is.String() != name || len(name) > 2*63+1 ||
			region != "here" && region != "there" {
			t.Errorf("%q was admitted to %q as %+v, %v", name, region, is, err)
		}
		if strings.ContainsFunc(name+is.address,
			func(r rune) bool { return r <= ' ' || r >= 0x7f }) ||
			len(is.address) > maxAddressBytes {
			t.Errorf("%q at %q was admitted", name, is.address)
		}
	})
}
