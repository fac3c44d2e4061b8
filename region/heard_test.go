//go:build !race

package region_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestAPeerRegionOfTwoNodes: of a third region's two nodes one has heard of us before, and the other one
// hears it until the end. us is cut off from those that have its copies, and goes on. After the loss the node
// that heard last answers later than the other one, or is gone.
func TestAPeerRegionOfTwoNodes(t *testing.T) {
	for _, how := range []string{"as near", "later", "gone"} {
		t.Run(how, func(t *testing.T) {
			d := fourRegions(t)
			inBubble(t, append([]string{"sa/n2"}, fourAlone...), func(t *testing.T, c *cluster) {
				us := c.beside(d, "eu/n1", "ap/n1", "sa/n1", "sa/n2")
				us.check(t, request("c"))
				time.Sleep(5 * time.Second)
				heard, other := c.called(us, "sa")
				// The one that is called stands still for a moment, so the other one is called from then on.
				c.Network.CutBoth("us/n1", heard, 6*time.Second)
				c.within(20*time.Second, "the other node of sa to be called", func() bool {
					return c.calls(us, other)
				})
				time.Sleep(8 * time.Second)
				t.Logf("%s was heard of first, %s then", heard, other)
				if !c.calls(us, other) {
					t.Fatal("the first one is called again")
				}
				for _, mate := range us.rights.Mates() {
					c.Network.CutBoth("us/n1", mate.Region+"/n1", 30*time.Second)
				}
				time.Sleep(4 * time.Second)
				us.usesUp(t, "c")
				time.Sleep(3 * time.Second)
				for _, p := range us.Status().Peers {
					if p.Region == "sa" && p.Degraded {
						t.Fatal("sa does not hear us")
					}
				}
				c.losesAll()
				c.answers(other, how)
				time.Sleep(30 * time.Second)
				us = c.start("us/n1", d)
				staysClosed(t, us, "c")
			})
		})
	}
}

// TestARegionOfTwoThatHasOne: a region is configured for two nodes and has one at the moment. It leaves
// copies in other regions, which have two nodes each. Then it loses all.
func TestARegionOfTwoThatHasOne(t *testing.T) {
	d := documents.Parse(t, 1, []string{"us: {weight: 8}", "eu: {weight: 1}", "ap: {weight: 1}"}, long("fixed_window", 100, ", lending_limit: 0"))
	others := []string{"eu/n1", "eu/n2", "ap/n1", "ap/n2"}
	inBubble(t, append([]string{"us/n1", "us/n2"}, others...), func(t *testing.T, c *cluster) {
		us := c.beside(d, others...)
		us.check(t, request("b"))
		time.Sleep(10 * time.Second)
		if n := us.rights.Numbers().Copies; n != 2 {
			t.Fatalf("%d copies", n)
		}
		c.losesAll()
		time.Sleep(20 * time.Second)
		us = c.start("us/n1", d)
		c.decides(us, 40*time.Second, admit.WithinLimit, "b")
	})
}

// TestABlipBeforeTheLoss: a region of one node does not reach one of another region's two nodes for a
// moment, and tells the other one from then on, which has its copies until the end. The first one has an old copy
// and an old time. No line is cut any more when us loses all. What the second node knows comes later, or not.
func TestABlipBeforeTheLoss(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		for _, how := range []string{"as near", "later", "gone"} {
			t.Run(fmt.Sprintf("nodes %d, %s", nodes, how), func(t *testing.T) {
				d := documents.Parse(t, 1, []string{"us: {weight: 7}", "eu: {weight: 3}"}, long("fixed_window", 100, ", lending_limit: 0"))
				inBubble(t, []string{"eu/n1", "eu/n2", "us/n1"}, func(t *testing.T, c *cluster) {
					c.sizes["us"] = nodes
					us := c.beside(d, "eu/n1", "eu/n2")
					us.check(t, request("c"))
					time.Sleep(5 * time.Second)
					first, other := c.called(us, "eu")
					c.Network.CutBoth("us/n1", first, 6*time.Second)
					time.Sleep(20 * time.Second)
					if !c.calls(us, other) {
						t.Fatal("the first one is called again")
					}
					us.usesUp(t, "c")
					time.Sleep(30 * time.Second)
					if n := us.rights.Numbers().Copies; n != 1 {
						t.Fatalf("%d copies", n)
					}
					c.losesAll()
					c.answers(other, how)
					time.Sleep(20 * time.Second)
					us = c.start("us/n1", d)
					us.admitsNothing(t, "c", 30)
					t.Logf("%v", us.check(t, request("c")).Reason)
				})
			})
		}
	}
}

// TestTheStoresTimeStandsStill: the clock of us's Redis was ahead for a moment, so its time stands still.
// Meanwhile us is cut off from those that have its copies, and goes on. A third region hears it, and hears no
// later time.
func TestTheStoresTimeStandsStill(t *testing.T) {
	for _, jumps := range []bool{false, true} {
		t.Run(fmt.Sprintf("jumps %t", jumps), func(t *testing.T) {
			d := fourRegions(t)
			inBubble(t, fourAlone, func(t *testing.T, c *cluster) {
				var ahead atomic.Int64
				c.twins["us"] = twinOf("r", func() time.Duration { return time.Duration(ahead.Load()) })
				us := c.beside(d, fourAlone[1:]...)
				us.check(t, request("c"))
				time.Sleep(5 * time.Second)
				if jumps {
					ahead.Store(int64(50 * time.Second))
					us.check(t, request("c"))
					time.Sleep(3 * time.Second)
					ahead.Store(0)
				}
				time.Sleep(time.Second)
				for _, mate := range us.rights.Mates() {
					c.Network.CutBoth("us/n1", mate.Region+"/n1", 30*time.Second)
				}
				time.Sleep(4 * time.Second)
				us.usesUp(t, "c")
				time.Sleep(5 * time.Second)
				c.losesAll()
				time.Sleep(2 * time.Minute) // no window comes again
				staysClosed(t, c.start("us/n1", d), "c")
			})
		})
	}
}

// TestARegionOfTwoThatHasOneAfterABlip: a region is configured for two nodes and has one at the moment. It
// leaves copies in other regions, which have two nodes each, of which one was never told anything. Then it loses all.
func TestARegionOfTwoThatHasOneAfterABlip(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			d := documents.Parse(t, 1, []string{"us: {weight: 8}", "eu: {weight: 1}", "ap: {weight: 1}"}, long("fixed_window", 100, ", lending_limit: 0"))
			others := []string{"eu/n2", "eu/n1", "ap/n2", "ap/n1"}
			inBubble(t, append([]string{"us/n1", "us/n2"}, others...), func(t *testing.T, c *cluster) {
				c.sizes["us"] = nodes
				c.Seed = "eu/n2"
				for _, other := range others {
					c.start(other, d)
				}
				c.Network.CutBoth("us/n1", "eu/n1", 20*time.Second)
				c.Network.CutBoth("us/n1", "ap/n1", 20*time.Second)
				us := c.start("us/n1", d)
				time.Sleep(30 * time.Second)
				c.meet()
				c.bootstrap = false
				nextCell(10 * time.Minute)
				us.check(t, request("b"))
				time.Sleep(10 * time.Second)
				if n := us.rights.Numbers().Copies; n != 2 {
					t.Fatalf("%d copies", n)
				}
				t.Logf("eu %v, ap %v", us.Peers().Nodes("eu")[0] == c.running["eu/n1"].config.PeerAdvertise, us.Peers().Nodes("ap")[0] == c.running["ap/n1"].config.PeerAdvertise)
				c.losesAll()
				c.Seed = "eu/n1"
				time.Sleep(20 * time.Second)
				us = c.start("us/n1", d)
				c.decides(us, 40*time.Second, admit.WithinLimit, "b")
			})
		})
	}
}

// TestALoneNodeThatEndsInOrder: what it saw until its end is known to the unit.
func TestALoneNodeThatEndsInOrder(t *testing.T) {
	d := documents.Parse(t, 1, []string{"us: {weight: 8}", "eu: {weight: 1}", "ap: {weight: 1}"}, long("fixed_window", 1000, ", lending_limit: 0"))
	for _, after := range []time.Duration{0, 100 * time.Millisecond, 3 * time.Second} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			inBubble(t, []string{"eu/n1", "ap/n1", "us/n1"}, func(t *testing.T, c *cluster) {
				us := c.beside(d, "eu/n1", "ap/n1")
				for range 7 {
					us.check(t, request("a"))
				}
				suite.Must(t, us.Drain(t.Context()))
				time.Sleep(after)
				c.losesAll()
				time.Sleep(5 * time.Second)
				us = c.start("us/n1", d)
				c.within(20*time.Second, "us/n1 to decide", func() bool { return us.check(t, request("a")).Allowed })
				if used := us.state(t, request("a")).Used; used != 8 {
					t.Errorf("%d used, want 8", used)
				}
			})
		})
	}
}

// TestANewNodeWhoseClockIsNotBelieved: the only node of a region ends for good. The one that takes its place
// has a clock that the store does not believe until the store has lost its data. It still heard of the
// first one, whose use it does not know.
func TestANewNodeWhoseClockIsNotBelieved(t *testing.T) {
	d := documents.Parse(t, 1, halves, long("fixed_window", 100, ", lending_limit: 0"))
	inBubble(t, []string{"us/n1", "eu/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		c.Seed = "eu/n1"
		c.sizes["us"] = 1
		c.onTwin("us")
		c.start("eu/n1", d)
		n1 := c.start("us/n1", d)
		c.meet()
		nextCell(10 * time.Minute)
		c.bootstrap = false
		n1.usesUp(t, "c")
		c.stop("us/n1")
		var ahead atomic.Int64
		ahead.Store(int64(-48 * time.Hour))
		n2 := c.start("us/n2", d, c.clockAhead(func() time.Duration { return time.Duration(ahead.Load()) }))
		time.Sleep(8 * time.Second)
		c.flushAll("us")
		ahead.Store(0)
		time.Sleep(5 * time.Second)
		staysClosed(t, n2, "c")
	})
}
