//go:build !race

package region_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestALaterLifeThatOthersHear: of three nodes us/n1 is cut off from the Redis and from us/n2. It hears of
// us/n2 from us/n3 all the time. If us/n2 restarts in order then, us/n1 has a copy of its life before, which is
// as late as all that it knows. Over half a minute later the others are lost with the Redis.
func TestALaterLifeThatOthersHear(t *testing.T) {
	r := startRelay(t)
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts %t", restarts), func(t *testing.T) {
			inBubble(t, []string{"us/n3", "us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
				c.onRedis("us")
				c.start("us/n3", d)
				n2 := c.start("us/n2", d)
				n1, reconnect := c.startBehind(r, "us/n1", d)
				c.meet()
				nextCell(10 * time.Minute)
				n2.check(t, request("a"))
				time.Sleep(3 * time.Second)
				r.lead("")
				c.Network.CutBoth("us/n1", "us/n2", time.Hour)
				if restarts {
					c.stop("us/n2")
					n2 = c.start("us/n2", d)
				}
				time.Sleep(time.Second)
				n2.usesUp(t, "a")
				for range 40 {
					if time.Sleep(time.Second); !n1.Sees("us/n2", 0) {
						t.Log("us/n1 does not hear of us/n2")
					}
				}
				c.flushAll("us")
				c.stop("us/n2")
				c.stop("us/n3")
				reconnect()
				n1.admitsNothing(t, "a", 60)
				t.Logf("%+v", n1.check(t, request("a")))
			})
		})
	}
}

// TestNamesOfALaterLife: us/n2 alone used all, and is lost with the Redis. It is back under its own name
// without its journal. us/n1 waits for its life before. Then us/n1 restarts, and its journal says only when the
// Redis answered the later life.
func TestNamesOfALaterLife(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts %t", restarts), func(t *testing.T) {
			inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
				c.sizes["us"] = 1
				n1 := c.start("us/n1", d)
				c.Network.CutBoth("us/n1", "us/n2", time.Hour) // no copies
				n2 := c.start("us/n2", d)
				nextCell(10 * time.Minute)
				time.Sleep(15 * time.Second)
				n2.usesUp(t, "a")
				time.Sleep(2 * time.Second)
				c.loseJournal("us/n2")
				c.flushAll("us")
				time.Sleep(3 * time.Second)
				c.start("us/n2", d)
				time.Sleep(20 * time.Second)
				if d := n1.check(t, request("a")); d.Allowed {
					t.Fatalf("us/n1 before its restart: %+v", d)
				}
				if restarts {
					c.stop("us/n1")
					n1 = c.start("us/n1", d)
				}
				n1.admitsNothing(t, "a", 20)
			})
		})
	}
}

// TestAGenerationAfterTheLoss: a region of one node has lost all, and decides by its copies. Then one
// bucket is deleted, so another generation begins, in which nothing else is lost. Keys that nobody asked for in
// between are decided as before.
func TestAGenerationAfterTheLoss(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleted %t", deleted), func(t *testing.T) {
			loneRegion(t, func(t *testing.T, c *cluster, us *running, lost func()) {
				us.check(t, request("c"))
				time.Sleep(3 * time.Second)
				lost()
				us = c.start("us/n1", c.running["eu/n1"].config.Policy)
				decidedAgain(t, c, us)
				time.Sleep(5 * time.Second)
				if deleted {
					generation := us.Status().Generation
					c.delete("us", us, "long", request("b"))
					us.check(t, request("b"))
					c.within(5*time.Second, "another generation", func() bool { return us.Status().Generation > generation })
				}
				c.decides(us, 30*time.Second, admit.WithinLimit, "c")
			})
		})
	}
}

// TestASecondLossAlone: the region of one node has recovered, is at rest for a minute, and its Redis
// loses its data once more, alone. Its node runs on, and the other regions have all copies.
func TestASecondLossAlone(t *testing.T) {
	loneRegion(t, func(t *testing.T, c *cluster, us *running, lost func()) {
		us.check(t, request("c"))
		time.Sleep(3 * time.Second)
		lost()
		us = c.start("us/n1", c.running["eu/n1"].config.Policy)
		decidedAgain(t, c, us)
		time.Sleep(time.Minute)
		c.flushAll("us")
		c.decides(us, 40*time.Second, admit.WithinLimit, "b", "c", "unused2")
	})
}

// TestASecondLossOfTwo: a zone was lost and is back under its names, all is decided again, and the new
// node has read the Redis. Then the Redis alone loses its data.
func TestASecondLossOfTwo(t *testing.T) {
	twoMates(t, 100, func(t *testing.T, c *cluster, n1, n2 *running) {
		n2.usesUp(t, "a")
		n2.check(t, request("b"))
		n2.check(t, request("c"))
		time.Sleep(5 * time.Second)
		c.loseJournal("us/n2")
		c.flushAll("us")
		time.Sleep(8 * time.Second)
		c.again("us/n2")
		c.meet()
		c.decides(n1, 20*time.Second, admit.WithinLimit, "b")
		c.decides(n1, 20*time.Second, admit.OverLimit, "a")
		time.Sleep(90 * time.Second)
		c.flushAll("us")
		c.decides(n1, 40*time.Second, admit.WithinLimit, "b", "c", "unused2")
	})
}

// TestWhatAnEarlierLossHid: us/n2 used all of a key alone, its copies are lost with it and the Redis, and
// it is rightly waited for. us/n1 goes on alone, reads the Redis, and leaves copies elsewhere. They do not
// have what the first loss took.
func TestWhatAnEarlierLossHid(t *testing.T) {
	d := fourRegions(t)
	inBubble(t, append([]string{"us/n2"}, fourAlone...), func(t *testing.T, c *cluster) {
		c.sizes["us"] = 1
		c.Network.CutBoth("us/n1", "us/n2", time.Hour)
		c.Seed = "eu/n1"
		for _, other := range fourAlone[1:] {
			c.start(other, d)
		}
		n1, n2 := c.start("us/n1", d), c.start("us/n2", d)
		nextCell(10 * time.Minute)
		n2.usesUp(t, "a")
		n2.check(t, request("probe"))
		time.Sleep(3 * time.Second)
		c.stop("us/n2")
		c.flushAll("us")
		time.Sleep(3 * time.Second)
		c.within(4*time.Minute, "us/n1 to have read", func() bool { return len(n1.rights.Gone()) == 1 })
		time.Sleep(5 * time.Second)
		t.Logf("%d copies", n1.rights.Numbers().Copies)
		time.Sleep(5 * time.Second)
		c.losesAll()
		time.Sleep(5 * time.Second)
		c.bootstrap = false
		n1 = c.start("us/n1", d)
		n1.admitsNothing(t, "a", 30)
		t.Logf("%v", n1.check(t, request("a")).Reason)
	})
}

// TestAZoneReplacedUnderAnotherName: a zone with the Redis and us/n2 is lost, and us/n3 takes the place of
// us/n2. us/n1 has a late copy, and tells it. us/n3, which gets all requests, does not know the name us/n2 and
// throws the copy away.
func TestAZoneReplacedUnderAnotherName(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2", "us/n3"}, func(t *testing.T, c *cluster) {
		c.sizes["us"] = 2
		n1, n2 := c.start("us/n1", d), c.start("us/n2", d)
		c.meet()
		nextCell(10 * time.Minute)
		n1.check(t, request("b"))
		n2.check(t, request("b"))
		n2.check(t, request("c"))
		time.Sleep(5 * time.Second)
		c.loseJournal("us/n2")
		c.flushAll("us")
		time.Sleep(20 * time.Second)
		n3 := c.start("us/n3", d)
		c.meet()
		c.decides(n3, time.Minute, admit.WithinLimit, "b")
		c.decides(n1, 20*time.Second, admit.WithinLimit, "b")
	})
}

// TestADeletionAfterAZone: a zone was lost and is back under its names, and all is decided again. Then one
// bucket is deleted, which both nodes have a note of.
func TestADeletionAfterAZone(t *testing.T) {
	twoMates(t, 100, func(t *testing.T, c *cluster, n1, n2 *running) {
		n1.check(t, request("b"))
		n2.check(t, request("b"))
		n2.check(t, request("c"))
		time.Sleep(5 * time.Second)
		c.loseJournal("us/n2")
		c.flushAll("us")
		time.Sleep(8 * time.Second)
		n2 = c.again("us/n2")
		c.meet()
		for _, n := range []*running{n1, n2} {
			c.decides(n, 20*time.Second, admit.WithinLimit, "b")
		}
		time.Sleep(90 * time.Second)
		c.delete("us", n1, "long", request("b"))
		c.decides(n1, time.Minute, admit.WithinLimit, "b", "c")
	})
}
