//go:build !race

package region_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/admit"
)

// fourAlone are a region of one node, two that have its copies, and one more.
var fourAlone = []string{"us/n1", "eu/n1", "ap/n1", "sa/n1"}

// fourRegions returns a document in which us has 70 of a hundred in a long window, which nobody lends.
func fourRegions(t *testing.T) *policy.Document {
	t.Helper()
	return documents.Parse(t, 1, []string{"us: {weight: 7}", "eu: {weight: 1}", "ap: {weight: 1}", "sa: {weight: 1}"},
		long(algorithms.FixedWindow, 100, ", lending_limit: 0"))
}

// beside starts us/n1 beside nodes of other regions, the first of which is the way in. They have found
// each other, and a long window has just begun. Nodes that start from now on know of a past.
func (c *cluster) beside(d *policy.Document, others ...string) (us *running) {
	c.t.Helper()
	c.Seed = others[0]
	for _, other := range others {
		c.start(other, d)
	}
	us = c.start("us/n1", d)
	c.meet()
	c.bootstrap = false
	nextCell(10 * time.Minute)
	return us
}

// losesAll ends us/n1, and takes its journal and its Redis's data away.
func (c *cluster) losesAll() {
	c.t.Helper()
	c.loseJournal("us/n1")
	c.flushAll("us")
}

// calls reports whether a node would call that node of another region, and none of its mates.
func (c *cluster) calls(n *running, other string) bool {
	region, _, _ := strings.Cut(other, "/")
	return n.Peers().Nodes(region)[0] == c.running[other].config.PeerAdvertise
}

// called returns which of a region's two nodes a node calls, and the other one.
func (c *cluster) called(n *running, region string) (first, other string) {
	first, other = region+"/n1", region+"/n2"
	if c.calls(n, other) {
		return other, first
	}
	return first, other
}

// answers has a node answer us later than others, or be gone.
func (c *cluster) answers(name, how string) {
	c.t.Helper()
	switch how {
	case "gone":
		c.stop(name)
	case "later":
		c.Network.SetDelay(name, "us/n1", 400*time.Millisecond)
	}
}

// loneRegion runs a test on four regions of one node each, where us has used 70 of "a" in the long window,
// its whole part, and one of "b". lost ends us/n1 and takes its journal and its Redis's data away.
func loneRegion(t *testing.T, f func(t *testing.T, c *cluster, us *running, lost func())) {
	t.Helper()
	d := fourRegions(t)
	inBubble(t, append([]string{"us/n2"}, fourAlone...), func(t *testing.T, c *cluster) {
		c.sizes["us"] = 1
		us := c.beside(d, fourAlone[1:]...)
		us.check(t, request("b"))
		us.usesUp(t, "a")
		if used := us.state(t, request("a")).Used; used != 70 {
			t.Fatalf("us used %d", used)
		}
		time.Sleep(5 * time.Second)
		f(t, c, us, c.losesAll)
	})
}

// decidedAgain checks that a node of us decides again within a while, and gives nothing of "a" again.
func decidedAgain(t *testing.T, c *cluster, us *running) {
	t.Helper()
	back := time.Now()
	for _, account := range []string{"b", "unused"} {
		c.within(20*time.Second, us.name+" to decide "+account, func() bool {
			if d := us.check(t, request("a")); d.Allowed {
				t.Fatalf("what was used is admitted again: %+v", d)
			}
			return us.check(t, request(account)).Reason == admit.WithinLimit
		})
	}
	c.decides(us, 20*time.Second, admit.OverLimit, "a")
	t.Logf("all are decided again after %v", time.Since(back).Round(time.Millisecond))
}

// staysClosed checks that a node of us admits nothing of an account, and waits for what nobody tells.
func staysClosed(t *testing.T, us *running, account string) {
	t.Helper()
	for range 30 {
		if d := us.check(t, request(account)); d.Allowed || d.Reason == admit.OverLimit {
			t.Fatalf("what was used is admitted again, or said to be known: %+v", d)
		}
		time.Sleep(time.Second)
	}
}

// TestARegionOfOneNodeLeavesCopies: a region of one node loses its Redis and that node's journal together, as
// where both are on one machine. Other regions have copies, so the node that takes its place, under its name
// or another one, decides again soon.
func TestARegionOfOneNodeLeavesCopies(t *testing.T) {
	for after, name := range map[time.Duration]string{0: "us/n1", 10 * time.Second: "us/n2", 90 * time.Second: "us/n1"} {
		t.Run(fmt.Sprint(name, after), func(t *testing.T) {
			loneRegion(t, func(t *testing.T, c *cluster, _ *running, lost func()) {
				lost()
				time.Sleep(after)
				us := c.start(name, c.running["eu/n1"].config.Policy)
				decidedAgain(t, c, us)
			})
		})
	}
}

// TestARegionOfOneNodeThatGoesOn: a region of one node is cut off from the two regions that have its copies,
// and goes on. A third one hears it. Then it loses everything. Nobody believes the copies, nor if the third
// region's node has restarted since and does not know what it had heard.
func TestARegionOfOneNodeThatGoesOn(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts %t", restarts), func(t *testing.T) {
			loneRegion(t, func(t *testing.T, c *cluster, us *running, lost func()) {
				us.check(t, request("c"))
				time.Sleep(2 * time.Second)
				hears := []string{"eu", "ap", "sa"}
				for _, mate := range us.rights.Mates() {
					c.Network.CutBoth("us/n1", mate.Region+"/n1", 20*time.Second)
					hears = slices.DeleteFunc(hears, func(other string) bool { return other == mate.Region })
				}
				if len(hears) != 1 {
					t.Fatalf("%v have no copies", hears)
				}
				time.Sleep(2 * time.Second)
				us.usesUp(t, "c")
				time.Sleep(time.Second)
				lost()
				if restarts {
					c.stop(hears[0] + "/n1")
					c.start(hears[0]+"/n1", us.config.Policy)
				}
				time.Sleep(20 * time.Second)
				staysClosed(t, c.start("us/n1", us.config.Policy), "c")
			})
		})
	}
}

// TestWhatNobodyHeardIsHadOnceMore: a region of one node is cut off from all others, goes on and loses everything.
// Nobody can know that it went on: what it used since is admitted once more, as limits bound prints, and no more.
func TestWhatNobodyHeardIsHadOnceMore(t *testing.T) {
	loneRegion(t, func(t *testing.T, c *cluster, us *running, lost func()) {
		for _, other := range fourAlone[1:] {
			c.Network.CutBoth("us/n1", other, 20*time.Second)
		}
		time.Sleep(2 * time.Second)
		unheard := us.usesUp(t, "c")
		lost()
		time.Sleep(20 * time.Second)
		n, again := c.start("us/n1", us.config.Policy), 0
		c.within(20*time.Second, "c to be decided", func() bool { return n.check(t, request("c")).Allowed })
		for again++; n.check(t, request("c")).Allowed; again++ {
		}
		c.decides(n, 5*time.Second, admit.OverLimit, "a")
		if unheard != 70 || again != 70 {
			t.Errorf("%d admitted unheard, %d once more, 70 printed", unheard, again)
		}
	})
}

// TestARegionOfOneNodeWaitsForAll: of two other regions one does not answer. It may have heard of something
// that the copies do not have.
func TestARegionOfOneNodeWaitsForAll(t *testing.T) {
	loneRegion(t, func(t *testing.T, c *cluster, us *running, lost func()) {
		lost()
		c.Network.CutBoth("us/n1", "ap/n1", time.Minute)
		n := c.start("us/n1", us.config.Policy)
		staysClosed(t, n, "a")
		time.Sleep(30 * time.Second)
		decidedAgain(t, c, n)
	})
}

// TestCopiesElsewhereAreOfAll: a region of two nodes has become one of one. What the other node used alone is
// not in the copies elsewhere before this one has read the Redis. It does so once the other one is gone, and not
// while that is only cut off from the Redis.
func TestCopiesElsewhereAreOfAll(t *testing.T) {
	d := fourRegions(t)
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("gone %t", gone), func(t *testing.T) {
			r := startRelay(t)
			inBubble(t, append([]string{"us/n2"}, fourAlone...), func(t *testing.T, c *cluster) {
				c.sizes["us"] = 1
				c.Network.CutBoth("us/n1", "us/n2", time.Hour)
				c.Seed = "eu/n1"
				for _, other := range fourAlone[1:] {
					c.start(other, d)
				}
				c.onRedis("us")
				n1 := c.start("us/n1", d)
				n2, _ := c.startBehind(r, "us/n2", d)
				nextCell(10 * time.Minute)
				n1.check(t, request("b"))
				n2.usesUp(t, "a")
				time.Sleep(3 * time.Second)
				r.lead("")
				if gone {
					c.stop("us/n2")
				}
				time.Sleep(2 * time.Minute)
				c.flushAll("us")
				c.loseJournal("us/n1")
				if !gone {
					c.stop("us/n2")
				}
				c.bootstrap = false
				us := c.start("us/n1", d)
				if gone {
					decidedAgain(t, c, us)
				} else {
					staysClosed(t, us, "a")
				}
			})
		})
	}
}
