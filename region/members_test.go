package region_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	labcluster "github.com/quotad/quotad/chaos/lab/cluster"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/gossip"
	"github.com/quotad/quotad/region"
)

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
		nowhere := c.Network.Host("nowhere-" + name)
		c.Network.Isolate(nowhere.Name(), time.Hour) // calls to it time out
		c.gossips(region, name, nowhere.IP())
	}
}

// gossips starts a gossip member that is not a node, and says that it is called at an address.
func (c *cluster) gossips(of, name string, called netip.Addr) {
	c.t.Helper()
	g, err := c.Join(name, gossip.Config{Name: of + "/" + name, State: noState{},
		Meta: region.MetaOf(c.t, of, name, netip.AddrPortFrom(called, labcluster.PeerPort).String())})
	suite.Must(c.t, err)
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
		c.invented("eu", region.FewestMembers+6)
		c.within(time.Minute, "the invented to be members",
			func() bool { return len(us.Members()) == region.FewestMembers+1 })
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
		c.Network.CutBoth("us/n1", "eu/n1", 5*time.Second)
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
		us.MembersChanged([]gossip.Member{{Name: "eu/evil", Meta: region.MetaOf(t, "eu", "evil",
			"10.9.9.9:1")}})
		if got := us.Peers().Lately("eu"); !slices.Equal(got, []string{eu}) {
			t.Errorf("of eu %q answered lately, want %s", got, eu)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := us.Peers().Exchange(ctx, "eu", exchange.Message{From: "us",
			Node: "n1"}); err != nil {
			t.Errorf("the true node is not called: %v", err)
		}
	})
}
