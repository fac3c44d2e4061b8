package region_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/admit"
)

// twoStores runs a test on us/n1 and eu/n1, which have started, and on us/n2, which is to start
// with a store of its own.
func twoStores(t *testing.T, f func(t *testing.T, c *cluster, first *lab.Twin,
	d *policy.Document)) {
	t.Helper()
	d := documents.Parse(t, 1, halves, "name: m, limit: 1000, window: 1s, on_store_failure: deny")
	inBubble(t, []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
		c.onTwin("us")
		c.start("us/n1", d)
		c.start("eu/n1", d)
		c.meet()
		first := c.twins["us"]
		c.twins["us"] = twinAhead("us-2", 0)
		f(t, c, first, d)
	})
}

// startApart cuts us/n2 off from all others for a while, and starts it.
func (c *cluster) startApart(d *policy.Document, lasts time.Duration) *running {
	c.t.Helper()
	for _, other := range []string{"us/n1", "eu/n1"} {
		c.Network.CutBoth("us/n2", other, lasts)
	}
	c.alone = true
	return c.start("us/n2", d)
}

// admittedIn returns how many units nodes admit in a window, at most 1,000 each, from now on.
func (c *cluster) admittedIn(window int64, nodes ...*running) (admitted int) {
	c.t.Helper()
	for range 100 {
		for _, n := range nodes {
			for range 10 {
				if d := n.check(c.t, request("a")); d.Allowed && int64(d.Cell) == window {
					admitted++
				}
			}
		}
		time.Sleep(time.Millisecond)
	}
	return admitted
}

// TestNoSecondStoreIsBegun: a node that would begin a second store of its region asks first, and is
// refused, whatever it is told about the region's past.
func TestNoSecondStoreIsBegun(t *testing.T) {
	for name, tc := range map[string]struct {
		bootstrap, alone, mateEnds bool
		says                       string
	}{
		"a first start":         {bootstrap: true, says: "us/n1 decides with another store"},
		"asking nobody":         {bootstrap: true, alone: true, says: "us/n1 decides with another store"},
		"a loss, as it seems":   {says: "us/n1 decides with another store"},
		"the others know of it": {bootstrap: true, mateEnds: true, says: "eu/n1 knows this region to have a store"},
	} {
		t.Run(name, func(t *testing.T) {
			twoStores(t, func(t *testing.T, c *cluster, first *lab.Twin, d *policy.Document) {
				c.bootstrap, c.alone = tc.bootstrap, tc.alone
				if tc.mateEnds {
					c.Seed = "eu/n1"
					c.stop("us/n1")
					time.Sleep(time.Minute)
				}
				_, err := c.tryStart("us/n2", d)
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %v, want %q", err, tc.says)
				}
				if !tc.mateEnds {
					if d := c.running["us/n1"].check(t, request("a")); !d.Allowed {
						t.Errorf("us/n1: %+v", d)
					}
				}
			})
		})
	}
}

// TestBootstrapWantsAnAnswer: --bootstrap is refused where seeds are given and none answers, and
// serves where nobody is to be asked or the others know of no store.
func TestBootstrapWantsAnAnswer(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: m, limit: 1000, window: 1s")
	inBubble(t, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		begun := time.Now()
		_, err := c.tryStart("eu/n1", d)
		if err == nil || !strings.Contains(err.Error(), "--bootstrap=alone for the very first node") ||
			time.Since(begun) > 15*time.Second {
			t.Errorf("after %v: error %v", time.Since(begun), err)
		}
		c.start("us/n1", d) // the seed: it has nobody to ask
		c.start("eu/n1", d)
		c.meet()
	})
}

// TestRegionsBootstrapTogether: nodes that start at one moment and wait for each other all start.
func TestRegionsBootstrapTogether(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: m, limit: 1000, window: 1s")
	inBubble(t, []string{"us/n1", "eu/n1", "eu/n2"}, func(t *testing.T, c *cluster) {
		starting := make(chan *running)
		for i, name := range []string{"eu/n1", "us/n1", "eu/n2"} {
			cfg := c.config(name, d)
			go func() {
				time.Sleep(time.Duration(i) * 2 * time.Second)
				n, err := c.begin(cfg)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				starting <- n
			}()
		}
		for range 3 {
			if n := <-starting; n != nil {
				c.running[n.name] = n
			}
		}
		c.meet()
		for _, n := range c.running {
			if err := n.Ready(); err != nil || n.Status().Store.Rivals != nil {
				t.Errorf("%s: %v, %+v", n.name, err, n.Status().Store.Rivals)
			}
		}
	})
}

// TestASecondStoreStops: two nodes of a region that cannot hear each other serve with two stores,
// and admit their region's share twice. As soon as they hear each other, the younger store's stops,
// and says so. It goes on with the older store once it is given that.
func TestASecondStoreStops(t *testing.T) {
	twoStores(t, func(t *testing.T, c *cluster, first *lab.Twin, d *policy.Document) {
		n1, eu := c.running["us/n1"], c.running["eu/n1"]
		n2 := c.startApart(d, time.Minute)
		nextCell(time.Second)
		if got := c.admittedIn(time.Now().Unix(), n1, n2, eu); got < 1400 || got > 1500 {
			t.Errorf("%d admitted of 1000 while the two stores cannot be told, want 1500: the share of us twice", got)
		}
		c.within(2*time.Minute, "us/n1 and us/n2 to hear each other", func() bool {
			return len(n2.Status().Mates) > 0
		})
		c.within(time.Second, "us/n2 to stop", func() bool { return n2.Ready() != nil })
		if err := n2.Ready(); !strings.Contains(err.Error(), "us/n1 decides with store") ||
			!strings.Contains(err.Error(), "redis.url") {
			t.Errorf("not ready: %v", err)
		}
		if err := n1.Ready(); err != nil {
			t.Errorf("us/n1 is not ready: %v", err)
		}
		nextCell(time.Second)
		if got := c.admittedIn(time.Now().Unix(), n1, n2, eu); got < 900 || got > 1000 {
			t.Errorf("%d admitted of 1000 after the younger store stopped", got)
		}
		if d := n2.check(t, request("a")); d.Allowed || d.Reason != admit.StoreFailure {
			t.Errorf("us/n2 decides with its store: %+v", d)
		}
		if _, err := n2.Served(t.Context(), exchange.Message{From: "eu"}); err == nil {
			t.Error("us/n2 serves the other region, which would not turn to us/n1")
		}
		time.Sleep(20 * time.Second)
		if s := n1.Status().Store; len(s.Rivals) != 1 || !s.Rivals[0].Stopped ||
			s.Rivals[0].Node != "us/n2" || s.Stops != 0 {
			t.Errorf("us/n1 shows %+v", s.Rivals)
		}
		if s := n2.Status().Store; len(s.Rivals) != 1 || s.Stops != 1 || s.Stopped == nil {
			t.Errorf("us/n2 shows %+v", s)
		}

		// Started anew with its own store, it has stopped before it serves, although the older
		// store has lost its data since, so that its successor is the younger.
		second := c.twins["us"]
		c.twins["us"] = first
		c.flushAll("us")
		c.within(5*time.Second, "us/n1 to open its store anew", func() bool {
			return n1.Status().Store.Losses == 1
		})
		time.Sleep(2 * time.Second)
		if n1.Ready() != nil || n2.Ready() == nil {
			t.Errorf("after a loss of the older store: us/n1 %v, us/n2 %v", n1.Ready(), n2.Ready())
		}
		c.stop("us/n2")
		c.twins["us"] = second
		n2 = c.start("us/n2", d)
		if n2.Ready() == nil || n2.check(t, request("a")).Allowed {
			t.Error("us/n2 serves with its store after a restart")
		}

		// Given the older store it serves. Its journal tells of times that this store never showed,
		// which would count as a loss.
		c.stop("us/n2")
		suite.Must(t, os.RemoveAll(filepath.Join(c.Dir, "us-n2")))
		c.twins["us"] = first
		n2 = c.start("us/n2", d)
		nextCell(time.Second)
		if d := n2.check(t, request("a")); n2.Ready() != nil || !d.Allowed {
			t.Errorf("with the older store: %v, %+v", n2.Ready(), d)
		}
	})
}

// hearsayStops is how long gossip alone may stop a node.
const hearsayStops = time.Minute

// TestASecondStoreLeavesNoTrace: a second store that was opened as after a loss asks the other
// region, which then takes no rows of earlier generations. When it has stopped, the older store
// lends as before.
func TestASecondStoreLeavesNoTrace(t *testing.T) {
	d := documents.Parse(t, 1, halves, long(algorithms.FixedWindow, 2000, ", lending_limit: 0.5"))
	inBubble(t, []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
		c.onTwin("us")
		n1, eu := c.start("us/n1", d), c.start("eu/n1", d)
		c.meet()
		c.twins["us"] = twinAhead("us-2", 0)
		c.Network.CutBoth("us/n2", "us/n1", 3*time.Minute)
		c.Seed, c.bootstrap = "eu/n1", false
		n2 := c.start("us/n2", d)
		// Gossip shows us/n1 by way of eu. That alone stops us/n2 for a minute, and not for longer.
		if err := n2.Ready(); err == nil || !strings.Contains(err.Error(), "as gossip alone says") {
			t.Errorf("not stopped by gossip: %v", err)
		}
		c.within(hearsayStops+time.Second, "us/n2 to go on", func() bool { return n2.Ready() == nil })
		for range 100 { // it recovers the bucket, and so asks eu
			n2.check(t, request("a"))
			time.Sleep(100 * time.Millisecond)
		}
		if n2.Status().Exchange.Recovered == 0 {
			t.Fatal("the second store has recovered nothing: the test shows nothing")
		}
		if s := n2.Status(); s.NotReady != nil || len(s.Store.Rivals) != 1 ||
			!s.Store.Rivals[0].Hearsay {
			t.Errorf("us/n2 shows %v, %+v", s.NotReady, s.Store.Rivals)
		}
		c.within(4*time.Minute, "us/n2 to stop", func() bool { return n2.Ready() != nil })
		time.Sleep(5 * time.Second)
		if s := n1.Status(); s.Exchange.Fenced || s.NotReady != nil ||
			s.Generation <= n2.Status().Generation {
			t.Errorf("us/n1 of generation %d lends nothing: %+v, %v; us/n2 has %d", s.Generation,
				s.Exchange.Fenced, s.NotReady, n2.Status().Generation)
		}
		if got := eu.borrows(t, "a"); got <= 1000 {
			t.Errorf("eu was admitted %d: us lends it nothing", got)
		}
	})
}

// TestTheOpenerAsksWhatTimeTheStoreHasShown: the store's clock was ahead while one node was away.
// Then the store is gone, and the node opens another one, whose clock is right. Its time begins no
// earlier than what the first one had shown the other node.
func TestTheOpenerAsksWhatTimeTheStoreHasShown(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: m, limit: 1000, window: 1s, on_store_failure: deny")
	inBubble(t, []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
		first := twinAhead("us-1", 20*time.Second)
		c.twins["us"] = first
		n1 := c.start("us/n1", d)
		c.start("eu/n1", d)
		c.meet()
		n1.check(t, request("a"))
		shown := n1.Shown()
		first.SetDown(true)
		c.twins["us"], c.bootstrap = twinAhead("us-2", 0), false
		n2 := c.start("us/n2", d)
		if at := n2.tenure.LostAt(); at < shown {
			t.Errorf("us/n2 dates the loss %v before what the store has shown us/n1",
				time.Duration(shown.Sub(at))*time.Microsecond)
		}
	})
}
