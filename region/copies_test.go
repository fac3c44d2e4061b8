package region_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestARegionWithoutAZone: the Redis and one of two nodes are lost together, as an availability zone is.
// The other node has a copy of what that one saw, so keys of long windows are decided again within
// seconds: exactly those that were at rest for a second, and the others but for a hundredth of the split
// and a second's admissions.
func TestARegionWithoutAZone(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 1000, ""))
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		twin := c.onTwin("us")
		n1, n2 := c.start("us/n1", d), c.start("us/n2", d)
		c.meet()
		nextCell(10 * time.Minute)
		for i := range 900 { // more than one part has
			n2.check(t, request(fmt.Sprintf("many%d", i)))
		}
		for range 300 {
			n2.check(t, request("rests"))
			n1.check(t, request("both"))
			n2.check(t, request("both"))
		}
		time.Sleep(4 * time.Second)
		busy := 0
		for range 200 {
			n2.check(t, request("busy"))
			busy++
			time.Sleep(20 * time.Millisecond)
		}
		twin.SetDown(true)
		c.stop("us/n2")
		time.Sleep(30 * time.Second)
		twin.Restart()
		twin.SetDown(false)
		lost := time.Now()
		c.decides(n1, 20*time.Second, admit.WithinLimit, "rests", "both", "busy", "many699", "unused")
		t.Logf("all are decided again after %v", time.Since(lost).Round(time.Millisecond))
		for account, want := range map[string]int{"rests": 300, "both": 600, "many699": 1, "busy": busy - 10 - 50} {
			if used := int(n1.state(t, request(account)).Used); used < want {
				t.Errorf("%d used of %s, want at least %d", used, account, want)
			}
		}
	})
}

// TestARegionWithoutAZoneThatIsBackAtOnce: the same, where an empty Redis is there before gossip has noticed
// that the other node is gone.
func TestARegionWithoutAZoneThatIsBackAtOnce(t *testing.T) {
	twoMates(t, 100, func(t *testing.T, c *cluster, n1, n2 *running) {
		n2.usesUp(t, "a")
		time.Sleep(3 * time.Second)
		c.stop("us/n2")
		c.flushAll("us")
		lost := time.Now()
		c.within(20*time.Second, "a to be decided", func() bool {
			d := n1.check(t, request("a"))
			if d.Allowed {
				t.Fatalf("what us/n2 used is admitted again: %+v", d)
			}
			return d.Reason == admit.OverLimit
		})
		t.Logf("decided again after %v", time.Since(lost).Round(time.Millisecond))
	})
}

// TestACopyThatIsBehindIsNoWitness: a node is cut off from its mate, and goes on. Then it is lost with the
// Redis. What its mate has of it is too old.
func TestACopyThatIsBehindIsNoWitness(t *testing.T) {
	twoMates(t, 100, func(t *testing.T, c *cluster, n1, n2 *running) {
		n2.check(t, request("a"))
		time.Sleep(3 * time.Second)
		c.Network.CutBoth("us/n1", "us/n2", time.Hour)
		n2.usesUp(t, "a")
		time.Sleep(3 * time.Second)
		c.stop("us/n2")
		c.flushAll("us")
		n1.admitsNothing(t, "a", 30)
		if d := n1.check(t, request("a")); d.Reason != admit.Recovering {
			t.Errorf("us/n2 is not waited for: %+v", d)
		}
	})
}

// TestANodeThatOthersHear: a node is cut off from its mate and from the Redis. The mate goes on, and other
// regions hear it. Then the Redis loses its data, and the node reaches it again: its copy of the mate is as
// late as all that it knows, and proves nothing as long as the mate lives.
func TestANodeThatOthersHear(t *testing.T) {
	r := startRelay(t)
	d := documents.Parse(t, 1, halves, long("fixed_window", 100, ", lending_limit: 0"))
	inBubble(t, []string{"eu/n1", "us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		_ = c.start("eu/n1", d).journal.Close() // a disk that fails: it takes no copies
		c.onRedis("us")
		n2 := c.start("us/n2", d)
		n1, reconnect := c.startBehind(r, "us/n1", d)
		c.meet()
		nextCell(10 * time.Minute)
		n2.check(t, request("a"))
		time.Sleep(3 * time.Second)
		r.lead("")
		c.Network.CutBoth("us/n1", "us/n2", time.Hour)
		n2.usesUp(t, "a")
		time.Sleep(40 * time.Second)
		c.flushAll("us")
		n2.Close()
		reconnect()
		n1.admitsNothing(t, "a", 30)
	})
}

// TestANodeThatEndsInOrderLeavesAll: what a node saw until its end is known to its mate to the unit.
func TestANodeThatEndsInOrderLeavesAll(t *testing.T) {
	twoMates(t, 1000, func(t *testing.T, c *cluster, n1, n2 *running) {
		for range 7 { // less than a hundredth
			n2.check(t, request("a"))
		}
		suite.Must(t, n2.Drain(t.Context()))
		c.stop("us/n2")
		time.Sleep(5 * time.Second)
		c.flushAll("us")
		c.within(5*time.Second, "us/n1 to decide", func() bool { return n1.check(t, request("a")).Allowed })
		if used := n1.state(t, request("a")).Used; used != 8 {
			t.Errorf("%d used, want 8", used)
		}
	})
}

// TestNamesOutliveARestart: the last node that a region has restarts, and its Redis loses its data. It
// knows from its journal that another one used the Redis, which is gone, and waits for it. Without that
// the configuration, by which the region has one node, would let it give all again.
func TestNamesOutliveARestart(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		c.sizes["us"] = 1
		c.start("us/n1", d)
		c.Network.CutBoth("us/n1", "us/n2", time.Hour) // no copies
		n2 := c.start("us/n2", d)
		nextCell(10 * time.Minute)
		time.Sleep(15 * time.Second)
		n2.usesUp(t, "a")
		time.Sleep(2 * time.Second)
		c.stop("us/n2")
		c.stop("us/n1")
		c.flushAll("us")
		n1 := c.start("us/n1", d)
		n1.admitsNothing(t, "a", 20)
		if d := n1.check(t, request("a")); d.Reason != admit.Recovering {
			t.Errorf("us/n2 is not waited for: %+v", d)
		}
	})
}

// TestARollingUpdateUnderNewNames: all nodes of a region are replaced under new names, twice, and then the
// Redis loses its data. Those that are there have read what the store had of those that are gone, so
// nobody waits for the window's end, also after they have restarted.
func TestARollingUpdateUnderNewNames(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	names := []string{"us/n1", "us/n2", "us/n3", "us/n4", "us/n5", "us/n6"}
	inBubble(t, names, func(t *testing.T, c *cluster) {
		c.sizes["us"] = 2
		c.start(names[0], d)
		c.start(names[1], d)
		c.meet()
		nextCell(10 * time.Minute)
		for i := range 4 {
			account := fmt.Sprint("of ", names[i])
			c.running[names[i]].usesUp(t, account)
			c.Seed = names[i+1]
			c.start(names[i+2], d)
			c.meet()
			suite.Must(t, c.running[names[i]].Drain(t.Context()))
			c.stop(names[i])
			time.Sleep(5 * time.Second)
		}
		c.Seed = "us/n5"
		n5, n6 := c.running["us/n5"], c.running["us/n6"]
		c.within(3*time.Minute, "both to have read of four nodes", func() bool { return len(n5.rights.Gone()) == 4 && len(n6.rights.Gone()) == 4 })
		c.stop("us/n5")
		n5 = c.start("us/n5", d)
		time.Sleep(5 * time.Second)
		c.flushAll("us")
		lost := time.Now()
		for _, n := range []*running{n5, n6} {
			for i := range 4 {
				account := fmt.Sprint("of ", names[i])
				c.decides(n, 20*time.Second, admit.OverLimit, account)
			}
			c.within(20*time.Second, n.name+" to decide an unused key", func() bool { return n.check(t, request("unused by "+n.name)).Allowed })
		}
		t.Logf("all are decided again after %v", time.Since(lost).Round(time.Millisecond))
	})
}

// TestClaimsAreNotCopied: what a node spends without its Redis it notes in its journal beside the use of
// buckets. It is that node's alone: a mate that took it for its own would spend its part again.
func TestClaimsAreNotCopied(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: long, algorithm: fixed_window, limit: 100, window: 10m, on_store_failure: local")
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		twin := c.onTwin("us")
		n1 := c.start("us/n1", d)
		n1.check(t, request("a"))
		twin.SetDown(true)
		c.decides(n1, 10*time.Second, admit.StoreFailureLocal, "a")
		twin.SetDown(false)
		time.Sleep(3 * time.Second)
		claims := func(n *running) (all int) {
			page, _, err := n.journal.CheckpointsFrom("", 100)
			suite.Must(t, err)
			for _, c := range page {
				if strings.HasPrefix(c.Bucket, "local:") {
					all++
				}
			}
			return all
		}
		n2 := c.start("us/n2", d)
		c.meet()
		c.within(10*time.Second, "us/n2 to have a copy", func() bool { return n1.rights.Numbers().Copies == 1 })
		time.Sleep(3 * time.Second)
		if claims(n1) == 0 || claims(n2) > 0 {
			t.Errorf("us/n1 has %d claims, and us/n2 %d", claims(n1), claims(n2))
		}
	})
}

// TestAZoneThatIsBackUnderItsNames: the Redis and one of two nodes are lost together. The node is back soon,
// under its own name and without its journal, as a pod of a stateful set whose volume is gone. The other
// node has a copy of what it used in the life before.
func TestAZoneThatIsBackUnderItsNames(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 8 * time.Second, 40 * time.Second} {
		ends := after == 8*time.Second // once more
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			twoMates(t, 100, func(t *testing.T, c *cluster, n1, n2 *running) {
				n2.usesUp(t, "a")
				n2.check(t, request("b"))
				time.Sleep(5 * time.Second)
				c.loseJournal("us/n2")
				c.flushAll("us")
				time.Sleep(after)
				n2 = c.again("us/n2")
				c.meet()
				time.Sleep(after / 2) // the store has answered it again, or not yet
				back, all := time.Now(), []*running{n1, n2}
				if ends {
					all = all[:1]
					c.stop("us/n2")
				}
				for _, n := range all {
					for _, account := range []string{"b", "unused by " + n.name} {
						c.within(20*time.Second, n.name+" to decide "+account, func() bool {
							if d := n.check(t, request("a")); d.Allowed {
								t.Fatalf("what us/n2 used is admitted again: %+v", d)
							}
							return n.check(t, request(account)).Reason == admit.WithinLimit
						})
					}
					if d := n.check(t, request("a")); d.Reason != admit.OverLimit {
						t.Errorf("%s: %+v", n.name, d)
					}
				}
				t.Logf("all are decided again after %v", time.Since(back).Round(time.Millisecond))
			})
		})
	}
}
