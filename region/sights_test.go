//go:build !race

package region_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/decide/admit"
)

// againOf counts what a node admits again of an account within a minute after a loss.
func againOf(t *testing.T, n *running, account string) (again int) {
	t.Helper()
	var d admit.Decision
	for i := range 60 {
		for d = n.check(t, request(account)); d.Allowed; d = n.check(t, request(account)) {
			if again++; again == 1 {
				t.Logf("again after %d s", i)
			}
		}
		time.Sleep(time.Second)
	}
	t.Logf("%s: %d again, at last %v", account, again, d.Reason)
	return again
}

// TestWhoWasAnsweredLater: us/n1 is cut off from the Redis, us/n2 from its mates. us/n3 knows that the Redis
// answered us/n2 until the end, and tells so. us/n1 does not listen, and takes its old copy of us/n2 for a late one.
func TestWhoWasAnsweredLater(t *testing.T) {
	for _, asker := range []string{"us/n3", "us/n1"} {
		t.Run(asker, func(t *testing.T) {
			r := startRelay(t)
			d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
			inBubble(t, []string{"us/n3", "us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
				c.onRedis("us")
				c.start("us/n3", d)
				n2 := c.start("us/n2", d)
				_, reconnect := c.startBehind(r, "us/n1", d)
				c.meet()
				nextCell(10 * time.Minute)
				n2.check(t, request("a"))
				time.Sleep(3 * time.Second)
				r.lead("")
				c.Network.CutBoth("us/n1", "us/n2", time.Hour)
				c.Network.CutBoth("us/n3", "us/n2", time.Hour)
				time.Sleep(5 * time.Second)
				used := 1 + n2.usesUp(t, "a")
				time.Sleep(10 * time.Second)
				c.loseJournal("us/n2")
				c.flushAll("us")
				reconnect()
				time.Sleep(20 * time.Second)
				if again := againOf(t, c.running[asker], "a"); again > 0 {
					t.Errorf("%d used, %d again", used, again)
				}
			})
		})
	}
}

// TestUseHeardByCopyHidesAnswers: us/n1 is cut off from the Redis, and goes on to have copies of us/n2, so it
// knows a use that is later than when it last heard that the Redis answered us/n2. us/n4 is there, too.
func TestUseHeardByCopyHidesAnswers(t *testing.T) {
	r := startRelay(t)
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n3", "us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		c.sizes["us"] = 2
		c.onRedis("us")
		n3 := c.start("us/n3", d)
		n2 := c.start("us/n2", d)
		n1, reconnect := c.startBehind(r, "us/n1", d)
		c.meet()
		nextCell(10 * time.Minute)
		n2.check(t, request("a"))
		time.Sleep(3 * time.Second)
		r.lead("")
		time.Sleep(10 * time.Second)
		n3.check(t, request("a")) // what us/n3 sees is copied to us/n1
		time.Sleep(3 * time.Second)
		c.Network.CutBoth("us/n1", "us/n2", time.Hour)
		c.Network.CutBoth("us/n3", "us/n2", time.Hour)
		time.Sleep(time.Second)
		n2.usesUp(t, "a")
		time.Sleep(45 * time.Second)
		c.loseJournal("us/n2")
		c.flushAll("us")
		reconnect()
		time.Sleep(20 * time.Second)
		if again := againOf(t, n1, "a"); again > 0 {
			t.Errorf("%d again", again)
		}
	})
}

// withoutScan returns a way to a Redis that does not list its keys, as for a user who lacks +scan.
func withoutScan(t *testing.T) *relay {
	return startRewriting(t, func(b []byte) []byte {
		if bytes.Contains(b, []byte("}:try")) { // at its start a node looks whether it may
			return b
		}
		return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("$4\r\nscan\r\n"), []byte("$4\r\nxcan\r\n")), []byte("$4\r\nSCAN\r\n"), []byte("$4\r\nXCAN\r\n"))
	})
}

// TestFirstHeardLate: us/n1 is cut off for a moment in which us/n2 is added, uses all and is back without its
// journal. us/n1 hears of the name only then. Before us/n2 has read the Redis, that loses its data.
func TestFirstHeardLate(t *testing.T) {
	for _, when := range []string{"before it is lost", "after it is lost"} {
		t.Run(when, func(t *testing.T) {
			r, unread := startRelay(t), withoutScan(t)
			d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
			inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
				c.onRedis("us")
				n1, reconnect := c.startBehind(r, "us/n1", d)
				c.bootstrap = false
				nextCell(10 * time.Minute)
				n1.check(t, request("warm"))
				time.Sleep(3 * time.Second)
				r.lead("")
				c.Network.CutBoth("us/n1", "us/n2", time.Minute)
				heals := time.Now().Add(time.Minute)
				c.behind(unread, "us")
				n2 := c.start("us/n2", d)
				used, again := 0, 0
				for i := range 10 {
					for n2.check(t, request(fmt.Sprint("a", i))).Allowed {
						used++
					}
				}
				time.Sleep(time.Until(heals) - 2*time.Second)
				c.loseJournal("us/n2")
				if when == "after it is lost" {
					c.flushAll("us")
				}
				c.start("us/n2", d)
				reconnect()
				if when != "after it is lost" {
					time.Sleep(10 * time.Second)
					c.flushAll("us")
				}
				time.Sleep(5 * time.Second)
				for range 20 {
					for i := range 10 {
						for n1.check(t, request(fmt.Sprint("a", i))).Allowed {
							again++
						}
					}
					time.Sleep(time.Second)
				}
				if again > 0 {
					t.Errorf("%d used, %d again", used, again)
				}
				t.Logf("%d used, %v, %+v", used, n1.check(t, request("a0")).Reason, c.running["us/n2"].rights.Numbers())
			})
		})
	}
}

// TestFirstHeardAfterARestart: no line is cut. While us/n1 is down for maintenance, with its journal, us/n2 is
// added, uses all and is back without its journal. It cannot list the Redis's keys, or is not done with that when
// the Redis loses its data.
func TestFirstHeardAfterARestart(t *testing.T) {
	unread := withoutScan(t)
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		c.onRedis("us")
		direct := c.servers["us"]
		n1 := c.start("us/n1", d)
		c.bootstrap = false
		nextCell(10 * time.Minute)
		n1.check(t, request("warm"))
		time.Sleep(3 * time.Second)
		c.stop("us/n1")
		c.behind(unread, "us")
		n2 := c.start("us/n2", d)
		used := n2.usesUp(t, "a")
		time.Sleep(5 * time.Second)
		c.loseJournal("us/n2")
		c.Seed = "us/n2"
		c.start("us/n2", d)
		c.servers["us"] = direct
		time.Sleep(5 * time.Second)
		n1 = c.start("us/n1", d)
		c.meet()
		time.Sleep(5 * time.Second)
		c.flushAll("us")
		time.Sleep(3 * time.Second)
		if again := againOf(t, n1, "a"); again > 0 {
			t.Errorf("%d used, %d again", used, again)
		}
	})
}

// TestACopyOfAMomentThatLasts: the store's time stands still. us/n1 has a copy of us/n2 as of that time, then
// us/n2 is cut off from it for ten seconds, uses the rest at the same time, and is lost with the Redis. It is back
// without its journal. As soon as the time goes on, the copy counts as late, because a later life is answered itself.
func TestACopyOfAMomentThatLasts(t *testing.T) {
	d := documents.Parse(t, 1, alone, long("fixed_window", 100, ""))
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		var ahead atomic.Int64
		c.twins["us"] = twinOf("r", func() time.Duration { return time.Duration(ahead.Load()) })
		n1, n2 := c.start("us/n1", d), c.start("us/n2", d)
		c.meet()
		nextCell(10 * time.Minute)
		time.Sleep(5 * time.Second)
		ahead.Store(int64(50 * time.Second))
		n1.check(t, request("b"))
		time.Sleep(2 * time.Second)
		ahead.Store(0)
		time.Sleep(time.Second)
		n1.check(t, request("a"))
		time.Sleep(time.Second)
		c.Network.CutBoth("us/n1", "us/n2", 10*time.Second)
		time.Sleep(time.Second)
		used := 1 + n2.usesUp(t, "a")
		time.Sleep(2 * time.Second)
		c.loseJournal("us/n2")
		c.flushAll("us")
		time.Sleep(10 * time.Second)
		c.start("us/n2", d)
		if again := againOf(t, n1, "a"); again > 0 {
			t.Errorf("%d used, %d again", used, again)
		}
	})
}

// TestAZoneLostTwice: a zone with us/n2 and the Redis is lost, back, and lost once more, with copies of
// both lives that are late.
func TestAZoneLostTwice(t *testing.T) {
	twoMates(t, 100, func(t *testing.T, c *cluster, n1, n2 *running) {
		n2.check(t, request("b"))
		n2.check(t, request("c"))
		time.Sleep(5 * time.Second)
		for range 2 {
			c.loseJournal("us/n2")
			c.flushAll("us")
			time.Sleep(15 * time.Second)
			c.again("us/n2")
			c.meet()
			c.decides(n1, 30*time.Second, admit.WithinLimit, "b")
			time.Sleep(90 * time.Second)
		}
		c.decides(n1, time.Minute, admit.WithinLimit, "b", "c", "unused2")
	})
}
