package region_test

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestTheOperatorsWordOpensWhatNobodyKnows: one of three nodes is gone with its journal, and the Redis
// lost its data. Keys wait for the node, until an operator says at one node that they need not. The
// other one learns it from the store, and so does a node that is started again.
func TestTheOperatorsWordOpensWhatNobodyKnows(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2", "us/n3"}, func(t *testing.T, c *cluster) {
		n1, n2 := c.start("us/n1", d), c.start("us/n2", d)
		n3 := c.start("us/n3", d)
		c.meet()
		for i := range 30 {
			n := []*running{n1, n2, n3}[i%3]
			if got := n.check(t, request("a")); !got.Allowed {
				t.Fatalf("%s: %+v", n.name, got)
			}
		}
		n1.check(t, request("b"))
		c.stop("us/n3")
		c.flushAll("us")
		waits := func(n *running, account string) bool {
			return n.check(t, request(account)).Reason == admit.Recovering
		}
		for _, n := range []*running{n1, n2} {
			c.within(10*time.Second, n.name+" to wait for us/n3", func() bool { return waits(n, "a") })
		}
		time.Sleep(30 * time.Second)
		for _, n := range []*running{n1, n2} {
			all := n.Status().Recovering
			if !waits(n, "a") || len(all) != 1 || all[0].Limit != "long" || all[0].Buckets != 1 || all[0].Units != 100 || time.Since(all[0].Since) < 30*time.Second {
				t.Errorf("%s waits for %+v", n.name, all)
			}
		}
		suite.Must(t, n1.Waive(t.Context()))
		for _, n := range []*running{n1, n2} {
			c.within(3*time.Second, n.name+" to go on", func() bool { return n.check(t, request("a")).Allowed })
			if all := n.Status().Recovering; len(all) != 0 {
				c.within(time.Second, n.name+" to wait for nothing", func() bool { return len(n.Status().Recovering) == 0 })
			}
		}
		// What n1 and n2 know counts: at least the last that they saw of a. A key that nobody asked for
		// since the loss is open, too, and so it is for a node that was not there.
		if used := n1.state(t, request("a")).Used; used < 29 {
			t.Errorf("%d used of a, 30 were admitted before the loss", used)
		}
		c.stop("us/n2")
		n2 = c.start("us/n2", d)
		c.within(10*time.Second, "us/n2 to decide another key", func() bool { return n2.check(t, request("b")).Allowed })
		if used := n2.state(t, request("b")).Used; used < 2 {
			t.Errorf("%d used of b", used)
		}

		// A loss after the word is waited for.
		c.flushAll("us")
		c.within(10*time.Second, "us/n1 to wait again", func() bool { return waits(n1, "a") })
	})
}

// TestANodeThatIsGoneUnderItsName: a node was replaced by one with another name, as by a rolling update,
// and then the Redis lost its data. The region has as many nodes as it should, and none of them knows
// what the one that is gone admitted alone: its copies did not reach them, and they had no time to read the
// Redis. It is waited for, until its use counts no more.
func TestANodeThatIsGoneUnderItsName(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2", "us/n3"}, func(t *testing.T, c *cluster) {
		c.sizes["us"] = 2
		for _, other := range []string{"us/n1", "us/n2"} {
			c.Network.CutBoth("us/n3", other, time.Hour)
		}
		n1, n2 := goneUnderItsName(t, c, d, time.Second)
		for range 30 {
			for _, n := range []*running{n1, n2} {
				if d := n.check(t, request("a")); d.Allowed {
					t.Fatalf("%s admits what us/n3 admitted before: %+v", n.name, d)
				}
			}
			time.Sleep(time.Second)
		}
		if d := n2.check(t, request("a")); d.Reason != admit.Recovering {
			t.Errorf("it is not waited for: %+v", d)
		}
		// In the next window the node that is gone used nothing.
		nextCell(10 * time.Minute)
		c.within(5*time.Second, "the next window to be decided", func() bool { return n2.check(t, request("a")).Allowed })
		n1.check(t, request("b"))
		c.flushAll("us")
		c.decides(n1, 10*time.Second, admit.WithinLimit, "b")
	})
}

// goneUnderItsName has us/n3 admit 100 units of a, end, and the Redis lose its data after a while. It
// returns the other two nodes.
func goneUnderItsName(t *testing.T, c *cluster, d *policy.Document, after time.Duration) (n1, n2 *running) {
	n1, n2 = c.start("us/n1", d), c.start("us/n2", d)
	n3 := c.start("us/n3", d)
	nextCell(10 * time.Minute) // of which n1 and n2 know all that they do
	n3.usesUp(t, "a")
	time.Sleep(3 * time.Second)
	c.stop("us/n3")
	time.Sleep(after)
	c.flushAll("us")
	return n1, n2
}

// TestANodeThatIsGoneLeavesACopy: the same, where the other nodes had a copy of what it admitted.
func TestANodeThatIsGoneLeavesACopy(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2", "us/n3"}, func(t *testing.T, c *cluster) {
		c.sizes["us"] = 2
		n1, n2 := goneUnderItsName(t, c, d, time.Second)
		for _, n := range []*running{n1, n2} {
			c.decides(n, 20*time.Second, admit.OverLimit, "a")
			c.within(5*time.Second, n.name+" to decide", func() bool { return n.check(t, request("b")).Allowed })
		}
	})
}

// TestANodeThatIsAddedVouches: a node is added in the middle of a long window, and then the Redis loses
// its data. The store knew nothing of that node, so it used nothing before, and nobody waits for the
// window's end.
func TestANodeThatIsAddedVouches(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2", "us/n3"}, func(t *testing.T, c *cluster) {
		n1, n2 := c.start("us/n1", d), c.start("us/n2", d)
		for range 15 {
			nextCell(time.Minute)
		}
		for range 20 {
			n1.check(t, request("a"))
			n2.check(t, request("a"))
		}
		n3 := c.start("us/n3", d)
		c.meet()
		time.Sleep(3 * time.Second)
		c.flushAll("us")
		for _, n := range []*running{n1, n2, n3} {
			c.decides(n, 10*time.Second, admit.WithinLimit, "a", "unused by "+n.name)
		}
		if used := n1.state(t, request("a")).Used; used < 40 {
			t.Errorf("%d used of a, 40 were admitted before the loss", used)
		}
	})
}
