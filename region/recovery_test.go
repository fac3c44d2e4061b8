package region_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// windows are the kinds that a region recovers after a loss.
var windows = []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter,
	algorithms.SlidingWindowLog}

// long is a limit of ten minutes, which is long compared to the virtual time of a test.
func long(kind algorithms.Kind, units int, more string) string {
	return fmt.Sprintf("name: long, algorithm: %s, limit: %d, window: 10m, on_store_failure: deny%s", kind, units, more)
}

// state reads a bucket of the limit "long".
func (n *running) state(t *testing.T, q admit.Request) algorithms.State {
	t.Helper()
	b, err := n.Bucket(t.Context(), "long", "api", q.Descriptors)
	if err != nil {
		t.Fatalf("%s: %v", n.name, err)
	}
	return b.Inspected.State
}

// noticesLoss makes requests until the store decides one under a later generation. It returns how
// many were admitted.
func (c *cluster) noticesLoss(n *running, q admit.Request,
	before uint64) (admitted quantity.Units) {
	c.t.Helper()
	c.within(2*time.Second, n.name+" to open its store anew", func() bool {
		d := n.check(c.t, q)
		if d.Allowed {
			admitted++
		}
		return n.Status().Generation > before && d.Reason != admit.StoreFailure
	})
	return admitted
}

// borrows makes a region spend its entitlement of "long" and some units that others lend it. It
// returns what was admitted.
func (n *running) borrows(t *testing.T, account string) (admitted quantity.Units) {
	t.Helper()
	n.check(t, request(account))
	q := request(account)
	q.Cost = n.state(t, q).Free
	if !n.check(t, q).Allowed {
		t.Fatalf("%s: %d units that are free were denied", n.name, q.Cost)
	}
	before := n.counter(t, "units_borrowed")
	admitted = 1 + q.Cost + sum(n.load(t, request(account), 1, 1500*time.Millisecond))
	if n.counter(t, "units_borrowed") == before {
		t.Fatalf("%s borrowed nothing: the test shows nothing", n.name)
	}
	return admitted
}

func sum(all map[int64]quantity.Units) (units quantity.Units) {
	for _, u := range all {
		units += u
	}
	return units
}

// A region whose store lost everything, borrower or lender, gets its use and its rows back from the
// nodes that saw them. The next request is decided with them, all regions together admit the limit
// and no more, and rights move again.
func TestLossOfALongWindow(t *testing.T) {
	for _, kind := range windows {
		for _, loser := range []string{"us", "eu"} {
			t.Run(fmt.Sprintf("%s, %s", kind, loser), func(t *testing.T) {
				started(t, documents.Parse(t, 1, halves,
					long(kind, 2000, ", lending_limit: 1, borrowing_limit: 0.3")),
					[]string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
						us, eu, lost, q := c.running["us/n1"], c.running["eu/n1"],
							c.running[loser+"/n1"], request("a")
						admitted := us.borrows(t, "a")
						before, generation, lent := lost.state(t, q), lost.Status().Generation,
							eu.counter(t, "units_lent")
						c.flushAll(loser)
						since := c.noticesLoss(lost, q, generation)
						d := lost.check(t, q)
						if d.Reason == admit.StoreFailure || loser == "eu" && !d.Allowed {
							t.Errorf("the first request on the store opened anew: %+v", d)
						}
						if d.Allowed {
							since++
						}
						admitted += since
						after := lost.state(t, q)
						if after.Used != before.Used+since {
							t.Errorf("used %d, was %d before the loss, and %d since", after.Used,
								before.Used, since)
						}
						if loser == "eu" && after.Share != before.Share {
							t.Errorf("share %d, was %d before the loss", after.Share, before.Share)
						}
						for range 12 {
							admitted += sum(us.load(t, q, 4, 200*time.Millisecond)) +
								sum(eu.load(t, q, 9, 100*time.Millisecond))
						}
						if admitted != 2000 {
							t.Errorf("%d admitted of 2000", admitted)
						}
						us.borrows(t, "b")
						if got := eu.counter(t, "units_lent"); got <= lent {
							t.Errorf("eu lent %d units in all, %d before the loss", got, lent)
						}
					})
			})
		}
	}
}

// A request that finds a loss is answered within its time, which may be too short to hear from
// other nodes. What it is admitted is charged after what is restored.
func TestALossWithinTheDeadline(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: long, limit: 200, window: 10m, lending_limit: 0.5")
	inBubble(t, []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
		c.deadline = 50 * time.Millisecond // a round trip takes 80
		c.onTwin("us")                     // the sockets of a Redis would count it in real time
		n, q := c.start("us/n1", d), request("a")
		c.start("us/n2", d)
		c.start("eu/n1", d)
		c.meet()
		for range 40 {
			n.check(t, q)
		}
		c.delete("us", n, "long", q)
		begun := time.Now()
		if d := n.check(t, q); d.Reason != admit.StoreFailureLocal || !d.Allowed ||
			time.Since(begun) != c.deadline {
			t.Errorf("after %v: %+v", time.Since(begun), d)
		}
		time.Sleep(time.Second)
		if d := n.check(t, q); d.Reason != admit.WithinLimit || n.state(t, q).Used != 42 {
			t.Errorf("used %d of 42: %+v", n.state(t, q).Used, d)
		}
	})
}

// Two nodes of a region find the loss of their store at the same time, with requests coming.
// Together they admit exactly the limit.
func TestTwoNodesRecoverAtOnce(t *testing.T) {
	for _, kind := range windows {
		t.Run(string(kind), func(t *testing.T) {
			started(t, documents.Parse(t, 1, alone, long(kind, 300, "")),
				[]string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
					q := request("a")
					admitted := c.loadAll(q, 500*time.Millisecond)
					for range 2 {
						c.flushAll("us")
						admitted += c.loadAll(q, 400*time.Millisecond)
					}
					c.stop("us/n2")
					if admitted += c.loadAll(q, 3*time.Second); admitted != 300 {
						t.Errorf("%d admitted of 300", admitted)
					}
				})
		})
	}
}

// The node that finds the loss need not be the one that knows what was used.
func TestAMateKnowsWhatWasUsed(t *testing.T) {
	for name, regions := range map[string][]string{"alone": alone,
		"beside a region that was never there": halves} {
		t.Run(name, func(t *testing.T) {
			started(t, documents.Parse(t, 1, regions, long(algorithms.FixedWindow, 200,
				", lending_limit: 0")), []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
				n1, n2, q := c.running["us/n1"], c.running["us/n2"], request("a")
				for range 60 {
					n2.check(t, q)
				}
				generation := n1.Status().Generation
				c.flushAll("us")
				c.noticesLoss(n1, q, generation)
				n1.check(t, q)
				if got := n1.state(t, q).Used; got < 60 || got > 62 {
					t.Errorf("used %d, n2 was admitted 60", got)
				}
			})
		})
	}
}

// TestAMateThatTheSettingDoesNotCount: nodes is 1, which is the default, beside two nodes. The one that
// used all is there when the other finds the store empty, and is asked, also if the store had not yet told
// the other of it.
func TestAMateThatTheSettingDoesNotCount(t *testing.T) {
	for name, of := range map[string]struct {
		window string
		late   bool
	}{"long": {"10m", false}, "short": {"1m", false}, "just started": {"10m", true}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
				c.sizes["us"] = 1
				d := documents.Parse(t, 1, alone, fmt.Sprintf(
					"name: long, algorithm: fixed_window, limit: 200, window: %s, on_store_failure: deny", of.window))
				n1, q := c.start("us/n1", d), request("a")
				begins := time.Now().Truncate(10 * time.Minute).Add(10 * time.Minute)
				if of.late {
					time.Sleep(time.Until(begins))
				}
				n2 := c.start("us/n2", d)
				if !of.late {
					c.meet()
					time.Sleep(time.Until(begins))
				}
				for range 200 {
					n2.check(t, q)
				}
				generation := n1.Status().Generation
				c.flushAll("us")
				var more quantity.Units
				c.noticesLoss(n1, request("another"), generation)
				for range 200 {
					if n1.check(t, q).Allowed {
						more++
					}
				}
				if more > 0 {
					t.Errorf("%d more than the limit", more)
				}
			})
		})
	}
}

// What a region lent is known if the peer tells, or if the journals of all its nodes do. Otherwise
// all that may be lent counts as lent until the peer answers again.
func TestWhoKnowsWhatWasLent(t *testing.T) {
	suite.LongWithRace(t)
	for name, tc := range map[string]struct {
		cut, down, fresh bool
		known            bool
	}{
		"all are there":                         {known: true},
		"a node is down":                        {down: true, known: true},
		"a node's journal is new":               {fresh: true, known: true},
		"the peer is cut off":                   {cut: true, known: true},
		"the peer is cut off, a node is down":   {cut: true, down: true},
		"the peer is cut off, a journal is new": {cut: true, fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := documents.Parse(t, 1, halves, long(algorithms.FixedWindow, 2000,
				", lending_limit: 0.9, borrowing_limit: 0.3"))
			started(t, d, []string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
				us, eu, q := c.running["us/n1"], c.running["eu/n1"], request("a")
				admitted := eu.borrows(t, "a")
				before, generation := us.state(t, q), us.Status().Generation
				if lent := 1000 - before.Share; lent < 100 || lent > 800 {
					t.Fatalf("%d lent: the test shows nothing", lent)
				}
				if tc.down || tc.fresh {
					c.stop("us/n2")
				}
				if tc.fresh {
					suite.Must(t, os.RemoveAll(filepath.Join(c.Dir, "us-n2")))
					c.start("us/n2", d) // it has not read the store yet
					c.within(time.Second, "us/n1 to see it", func() bool { return len(us.Members()) == 3 })
				}
				if tc.cut {
					c.Network.CutBoth("us/n1", "eu/n1", 20*time.Second)
					c.Network.CutBoth("us/n2", "eu/n1", 20*time.Second)
				}
				c.flushAll("us")
				admitted += c.noticesLoss(us, q, generation)
				if us.check(t, q).Allowed {
					admitted++
				}
				want := before.Share
				if !tc.known {
					want = 1000 - 900
				}
				if got := us.state(t, q).Share; got != want {
					t.Errorf("share %d, want %d; it was %d", got, want, before.Share)
				}
				least := quantity.Units(1900)
				switch {
				case tc.down: // it tells what it used when it is back
					if us.check(t, q).Allowed {
						t.Error("admitted while a node that may have decided is down")
					}
					c.start("us/n2", d)
				case tc.fresh: // what the lost journal knew is not known until the window ends
					least = 1200
				}
				// It may borrow and be given rights back meanwhile, but not in an idle hour.
				time.Sleep(35 * time.Second)
				if got := us.state(t, q).Share; got < before.Share {
					t.Errorf("the peer is heard: share %d, it was %d", got, before.Share)
				}
				for range 10 {
					admitted += sum(us.load(t, q, 4, 200*time.Millisecond)) +
						sum(eu.load(t, q, 4, 200*time.Millisecond))
				}
				if admitted > 2000 || admitted < least {
					t.Errorf("%d admitted of 2000", admitted)
				}
			})
		})
	}
}

// A peer whose own store lost the bucket knows nothing about it. Only the journals do.
func TestBothRegionsLoseTheirStores(t *testing.T) {
	for _, down := range []bool{false, true} {
		t.Run(fmt.Sprintf("a node down: %v", down), func(t *testing.T) {
			started(t, documents.Parse(t, 1, halves, long(algorithms.FixedWindow, 2000,
				", lending_limit: 0.9, borrowing_limit: 0.3")), []string{"us/n1", "us/n2", "eu/n1"},
				func(t *testing.T, c *cluster) {
					us, eu, q := c.running["us/n1"], c.running["eu/n1"], request("a")
					admitted := eu.borrows(t, "a")
					want := us.state(t, q).Share
					generations := [2]uint64{us.Status().Generation, eu.Status().Generation}
					if down {
						c.stop("us/n2")
						want = 100
					}
					c.flushAll("us")
					c.flushAll("eu")
					admitted += c.noticesLoss(us, q, generations[0]) + c.noticesLoss(eu, q,
						generations[1])
					for _, n := range []*running{us, eu} {
						if n.check(t, q).Allowed {
							admitted++
						}
					}
					if got := us.state(t, q).Share; got != want {
						t.Errorf("share %d, want %d", got, want)
					}
					for range 10 {
						admitted += sum(us.load(t, q, 4, 200*time.Millisecond)) +
							sum(eu.load(t, q, 4, 200*time.Millisecond))
					}
					if admitted > 2000 {
						t.Errorf("%d admitted of 2000", admitted)
					}
				})
		})
	}
}

// It does not matter where requests go: three regions, two of which have two nodes, admit the limit
// in each window.
func TestTrafficMovesBetweenNodes(t *testing.T) {
	for _, exhausted := range []policy.OnExhausted{policy.ExhaustedDeny, policy.ExhaustedBorrow} {
		t.Run(string(exhausted), func(t *testing.T) {
			d := documents.Parse(t, 1, threeRegions,
				"name: two, limit: 200, window: 2s, lending_limit: 1, on_exhausted: "+
					string(exhausted))
			nodes := []string{"us/n1", "us/n2", "eu/n1", "ap/n1", "ap/n2"}
			started(t, d, nodes, func(t *testing.T, c *cluster) {
				admitted := map[int64]quantity.Units{}
				nextCell(2 * time.Second)
				first := c.running["us/n1"].check(t, request("b")).Cell + 1
				time.Sleep(1800 * time.Millisecond)
				for turn := range 40 { // 8 s, a third of a window at each node
					for cell, units := range c.running[nodes[turn%len(nodes)]].load(t, request("a"),
						3, 200*time.Millisecond) {
						admitted[cell] += units
					}
				}
				for cell := first; cell < first+4; cell++ {
					if admitted[int64(cell)] > 200 || admitted[int64(cell)] < 175 {
						t.Errorf("cell %d: %d admitted of 200", cell, admitted[int64(cell)])
					}
				}
			})
		})
	}
}
