package region_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/store"
)

// While its store is lost a node answers as on_store_failure says. It opens the store anew by
// itself. Then it keeps the cell of the loss and the next closed, because it is not known what was
// spent and lent of them.
func TestStoreLosesEverything(t *testing.T) {
	for behaviour, tc := range map[string]struct {
		allowed bool
		reason  admit.Reason
	}{
		"deny":  {false, admit.StoreFailure},
		"local": {true, admit.StoreFailureLocal},
		"allow": {true, admit.StoreFailureAllowed},
	} {
		t.Run(behaviour, func(t *testing.T) {
			d := documents.Parse(t, 1, alone,
				"name: second, limit: 100, window: 1s, lending_limit: 0.5, on_store_failure: "+
					behaviour)
			oneNode(t, d, func(t *testing.T, c *cluster, n *running) {
				nextCell(time.Second)
				before, generation := n.check(t, request("a")), n.Status().Generation
				c.flushAll("us")
				if got := n.check(t, request("a")); got.Allowed != tc.allowed ||
					got.Reason != tc.reason || got.Cell != 0 || got.Limit != "second" {
					t.Errorf("the store is lost: %+v", got)
				}
				c.within(time.Second, "the store to be opened anew", func() bool {
					return n.Status().Generation > generation &&
						n.journal.Generation() == n.Status().Generation
				})
				if got := n.journal.Generation(); got != n.Status().Generation ||
					n.Ready() != nil || n.Status().Epoch != d.Epoch().String() {
					t.Errorf("the journal remembers generation %d, status %+v", got, n.Status())
				}
				for _, cell := range []quantity.Cell{before.Cell, before.Cell + 1} {
					got := n.check(t, request("a"))
					if got.Allowed || got.Reason != admit.Recovering || got.RetryAfter <= 0 ||
						got.Share != 0 || got.Cell != cell {
						t.Errorf("cell %d, the loss was in %d: %+v", cell, before.Cell, got)
					}
					if got := n.check(t, request("b")); !got.Allowed || got.Cell != cell {
						t.Errorf("cell %d, nobody had used it: %+v", cell, got)
					}
					nextCell(time.Second)
				}
				admitted, last := n.drain(t, request("a"), 200)
				if admitted != 100 || last.Cell != before.Cell+2 || last.Share != 100 {
					t.Errorf("the cell after: %d admitted, then %+v", admitted, last)
				}
			})
		})
	}
}

// A node that does not notice a loss for want of requests loses nothing: the first request finds
// out.
func TestSeveralLossesCountOn(t *testing.T) {
	d := documents.Parse(t, 1, alone,
		"name: second, limit: 100, window: 1s, on_store_failure: deny")
	started(t, d, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		for range 3 {
			before := c.running["us/n1"].Status().Generation
			c.flushAll("us")
			time.Sleep(3 * time.Second)
			for _, n := range c.running {
				// The node may have noticed the loss before, looked at the store and opened it, in
				// these three seconds.
				generation := n.Status().Generation
				if got := n.check(t, request("a")); got.Allowed && generation == before {
					t.Errorf("%s: admitted by a lost store: %+v", n.name, got)
				}
			}
			c.within(time.Second, "both nodes to stand under one later generation", func() bool {
				after := c.running["us/n2"].Status().Generation
				for _, n := range c.running {
					if after <= before || n.Status().Generation != after ||
						n.journal.Generation() != after {
						return false
					}
				}
				return true
			})
		}
		nextCell(time.Second)
		nextCell(time.Second)
		for _, n := range c.running {
			if got := n.check(t, request("a")); !got.Allowed {
				t.Errorf("%s does not serve again: %+v", n.name, got)
			}
		}
	})
}

// Missing scripts say nothing about the data.
func TestScriptFlushIsNoLoss(t *testing.T) {
	d := documents.Parse(t, 1, alone,
		"name: second, limit: 100, window: 1s, on_store_failure: deny")
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		c.onRedis("us")
		n := c.start("us/n1", d)
		nextCell(time.Second)
		n.check(t, request("a"))
		generation := n.Status().Generation
		c.redis("us", func(ctx context.Context, client *redis.Client) error {
			return client.ScriptFlush(ctx).Err()
		})
		if got := n.check(t, request("a")); !got.Allowed || got.Remaining != 98 {
			t.Errorf("after SCRIPT FLUSH: %+v", got)
		}
		if got := n.Status().Generation; got != generation {
			t.Errorf("generation %d, was %d", got, generation)
		}
	})
}

// A region whose store lost everything takes part again, and together with its peers stays below
// the limit.
func TestLossBesideAPeer(t *testing.T) {
	d := documents.Parse(t, 1, halves,
		"name: second, limit: 100, window: 1s, on_store_failure: deny")
	twoRegions(t, d, func(t *testing.T, c *cluster, us, eu *running) {
		nextCell(time.Second)
		admitted := map[int64]quantity.Units{}
		// us wants everything; eu is idle at first and wants its own part later
		both := func(d time.Duration) {
			for cell, sum := range us.load(t, request("a"), 2, d) {
				admitted[cell] += sum
			}
		}
		both(2 * time.Second)
		if us.counter(t, "units_borrowed") == 0 {
			t.Fatal("us borrowed nothing: the test shows nothing")
		}
		generation := eu.Status().Generation
		c.flushAll("eu")
		eu.check(t, request("other"))
		both(2 * time.Second)
		lent := eu.counter(t, "units_lent")
		both(3 * time.Second)
		for cell, sum := range admitted {
			got, _ := eu.drain(t, request("b"), 200)
			if sum > 100 || got > 100 {
				t.Errorf("cell %d: %d admitted", cell, sum)
			}
		}
		if got := eu.counter(t, "units_lent"); got == lent || eu.Status().Generation <= generation {
			t.Errorf("eu lends no more: %d units before, %d after, generation %d", lent, got,
				eu.Status().Generation)
		}
	})
}

func TestStoreOutOfReach(t *testing.T) {
	d := documents.Parse(t, 1, halves,
		"name: closed, domain: closed, limit: 100, window: 1s, on_store_failure: deny",
		"name: open, domain: open, limit: 100, window: 1s, on_store_failure: allow",
		"name: second, limit: 100, window: 1s, lending_limit: 0.5")
	started(t, d, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		generation := n.Status().Generation
		c.loseStore("us")
		nextCell(time.Second)
		for domain, want := range map[string]admit.Reason{"closed": admit.StoreFailure,
			"open": admit.StoreFailureAllowed} {
			got := n.check(t, admit.Request{Domain: domain, Descriptors: request("a").Descriptors,
				Cost: 1})
			if got.Reason != want || got.Allowed != (domain == "open") {
				t.Errorf("%s: %+v", domain, got)
			}
		}
		for range 2 {
			for name, n := range c.running {
				admitted, last := n.drain(t, request("a"), 50)
				if admitted != 12 || last.Reason != admit.StoreFailureLocal ||
					last.RetryAfter != last.ResetAfter || last.RetryAfter != 900*time.Millisecond {
					t.Errorf("%s: %d admitted, want its floor((50 - 25) / 2); then %+v", name,
						admitted, last)
				}
			}
			nextCell(time.Second)
		}
		// A store that does not answer may have lost nothing, so it is not opened anew for that.
		if s := n.Status(); s.Generation != generation || s.NotReady != nil {
			t.Errorf("status %+v", s)
		}
		if _, err := n.Bucket(t.Context(), "second", "api", request("a").Descriptors); err == nil {
			t.Error("a bucket was read from a store that is not there")
		}
	})
}

// A node that comes back to its journal and its store goes on where it was.
func TestRestart(t *testing.T) {
	d := documents.Parse(t, 1, alone,
		"name: minute, limit: 100, window: 1m, on_store_failure: deny")
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		var generation uint64
		for incarnation := range uint64(3) {
			n := c.start("us/n1", d)
			if incarnation == 0 {
				generation = n.Status().Generation
			}
			q := request("a")
			q.Cost = 10
			if got := n.check(t, q); !got.Allowed ||
				got.Remaining != quantity.Units(90-10*incarnation) || got.Sequence != 1 {
				t.Errorf("start %d: %+v", incarnation, got)
			}
			if n.Status().Generation != generation || n.journal.Generation() != generation ||
				n.journal.Incarnation() != incarnation+1 {
				t.Errorf("start %d: generation %d, journal %d, incarnation %d", incarnation,
					n.Status().Generation, n.journal.Generation(), n.journal.Incarnation())
			}
			c.stop("us/n1")
		}
		c.flushAll("us")
		n := c.start("us/n1", d) // told to bootstrap, but its journal knows better
		if got := n.check(t, request("a")); got.Allowed || got.Share != 0 ||
			n.Status().Generation <= generation {
			t.Errorf("a store lost while the node was down: %+v, generation %d", got,
				n.Status().Generation)
		}
		for range 2 {
			nextCell(time.Minute)
		}
		if got := n.check(t, request("a")); !got.Allowed || got.Remaining != 99 {
			t.Errorf("two cells later: %+v", got)
		}
	})
}

// timeAhead is how far ahead of the store's time a journal says that it may have come (package
// tenure).
const timeAhead = 3 * time.Second

// A Redis restored from a copy older than the generation in the journal has lost what came since.
func TestOldCopyOfTheStore(t *testing.T) {
	d := documents.Parse(t, 1, alone,
		"name: second, limit: 100, window: 1s, on_store_failure: deny")
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		later := c.start("us/n1", d).Status().Generation + 1000
		suite.Must(t, c.running["us/n1"].journal.SetGeneration(later))
		c.stop("us/n1")
		n := c.start("us/n1", d)
		if got := n.check(t, request("a")); got.Allowed || got.Share != 0 ||
			n.Status().Generation <= later {
			t.Errorf("an old copy serves under generation %d, the journal remembers %d: %+v",
				n.Status().Generation, later, got)
		}
		time.Sleep(timeAhead)
		nextCell(time.Second)
		nextCell(time.Second)
		if got := n.check(t, request("a")); !got.Allowed || got.Remaining != 99 {
			t.Errorf("two cells later: %+v", got)
		}
	})
}

// Without a journal that remembers the region, only the operator can say that an empty store is a
// first start.
func TestFirstStart(t *testing.T) {
	d := documents.Parse(t, 1, alone,
		"name: second, limit: 100, window: 1s, on_store_failure: deny")
	for _, bootstrap := range []bool{true, false} {
		t.Run(fmt.Sprintf("bootstrap %v", bootstrap), func(t *testing.T) {
			inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
				c.bootstrap = bootstrap
				n := c.start("us/n1", d)
				if got := n.check(t, request("a")); got.Allowed != bootstrap ||
					n.Status().Generation == 0 {
					t.Errorf("first decision: %+v", got)
				}
				nextCell(time.Second)
				nextCell(time.Second)
				if got := n.check(t, request("a")); !got.Allowed {
					t.Errorf("two cells later: %+v", got)
				}
			})
		})
	}
}

// After a loss a mate asks a node that gets no requests, and so that node joins the new generation.
// Under the old one it would lend nothing.
func TestAnIdleNodeStandsWithItsMate(t *testing.T) {
	d := documents.Parse(t, 1, halves, long(algorithms.FixedWindow, 100, ""))
	started(t, d, []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
		n1, n2, q := c.running["us/n1"], c.running["us/n2"], request("a")
		n1.check(t, q)
		before := n2.Status().Generation
		c.flushAll("us")
		c.noticesLoss(n1, q, before)
		c.within(5*time.Second, "the idle node to stand anew",
			func() bool { return n2.Status().Generation == n1.Status().Generation })
	})
}

// After the store was opened, nothing is restored before this node has told its peers under the new
// generation: an answer to an earlier question would fence no node.
func TestNothingIsRestoredBeforeTheNodeStands(t *testing.T) {
	started(t, documents.Parse(t, 1, halves, long(algorithms.FixedWindow, 100, "")),
		[]string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
			n, q := c.running["us/n1"], request("a")
			n.check(t, q)
			c.flushAll("us")
			before := n.config.Store.Generation()
			o, err := n.config.Store.Open(t.Context(),
				store.Opening{Region: "us", Node: "n1", Epoch: n.tenure.Rules().Epoch, LastGeneration: before})
			if err != nil || !o.Lost {
				t.Fatalf("%+v, %v", o, err)
			}
			for range 10 {
				if d := n.check(t, q); d.Reason == admit.WithinLimit {
					t.Fatalf("decided under generation %d, restored by questions of generation %d: %+v", o.Generation, before, d)
				}
			}
			suite.Must(t, n.tenure.OpenOnce(t.Context()))
			if d := n.check(t, q); d.Reason != admit.WithinLimit || n.state(t, q).Used != 2 {
				t.Errorf("the node stands: %+v, used %d of 2", d, n.state(t, q).Used)
			}
		})
}
