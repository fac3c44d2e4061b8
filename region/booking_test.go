package region_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/local"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
)

// cutOff runs a test on the only node of a region, whose store can be cut off.
func cutOff(t *testing.T, limit string, f func(t *testing.T, c *cluster, n *running, cut,
	reconnect func())) {
	t.Helper()
	r := startRelay(t)
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		back := c.behind(r, "us")
		n := c.start("us/n1", documents.Parse(t, 1, alone, limit))
		n.check(t, request("other"))
		f(t, c, n, func() { r.lead("") }, func() {
			back()
			time.Sleep(2 * time.Second) // go-redis looks for a lost server once a second
			if n := c.running["us/n1"]; n != nil && (n.limiter.Queue().OutOfReach()[store.Whole] ||
				n.limiter.Local().Status().Unbooked != 0) {
				t.Fatalf("the store is not told: %+v", n.limiter.Local().Status())
			}
		})
	})
}

// spends makes requests while the store is cut off, until this node's part is spent or the given
// number was admitted.
func (n *running) spends(t *testing.T, q admit.Request, most int) (admitted quantity.Units) {
	t.Helper()
	for range most {
		d := n.check(t, q)
		if d.Reason != admit.StoreFailureLocal {
			t.Fatalf("decided by the store: %+v", d)
		}
		if !d.Allowed {
			break
		}
		admitted += q.Cost
	}
	return admitted
}

func longLimit(kind algorithms.Kind, units int, window string) string {
	return fmt.Sprintf("name: long, algorithm: %s, limit: %d, window: %s, lending_limit: 0.5", kind,
		units, window)
}

// What a node admits while its store is out of reach is charged there once, as soon as the store
// answers again. This holds for every algorithm.
func TestLocalSpendingIsBooked(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			cutOff(t, longLimit(kind, 200, "10m"), func(t *testing.T, c *cluster, n *running, cut,
				reconnect func()) {
				q := request("a")
				for range 10 {
					n.check(t, q)
				}
				before := n.state(t, q)
				cut()
				want, part := n.spends(t, q, 200), quantity.Units(100)
				if kind.Sliding() {
					part = 50
				}
				if want != part {
					t.Fatalf("%d admitted, the part is %d", want, part)
				}
				reconnect()
				for turn := range 3 {
					// A bucket refills a unit in three seconds, and a fading window less.
					if got := before.Free - n.state(t, q).Free; got > want || got < want-3 {
						t.Errorf("turn %d: %d charged, %d spent", turn, got, want)
					}
					// as if the answer to the charge had been lost
					n.limiter.Changed(tenure.Change{Anew: true})
					time.Sleep(2 * region.BookEvery)
				}
				cut()
				if got := n.spends(t, q, 200); got != 0 {
					t.Errorf("%d more admitted in the window whose part was spent", got)
				}
			})
		})
	}
}

// Units spent in a window are charged to that window. In the next one they count only if use fades
// over two windows, and later not at all.
func TestLocalSpendingIsBookedIntoItsWindow(t *testing.T) {
	suite.LongWithRace(t)
	// what is charged in the same window, the next, and the one after
	for kind, want := range map[algorithms.Kind][3]quantity.Units{
		algorithms.FixedWindow:          {20, 0, 0},
		algorithms.SlidingWindowCounter: {20, 17, 0},
		algorithms.SlidingWindowLog:     {20, 20, 0},
	} {
		for later, want := range want {
			t.Run(fmt.Sprintf("%s, %d later", kind, later), func(t *testing.T) {
				cutOff(t, longLimit(kind, 100, "75s"), func(t *testing.T, c *cluster, n *running, cut,
					reconnect func()) {
					cut()
					nextCell(75 * time.Second)
					if got := n.spends(t, request("a"), 20); got != 20 {
						t.Fatalf("%d admitted", got)
					}
					for range later {
						nextCell(75 * time.Second)
					}
					reconnect()
					if got := n.state(t, request("a")).Used; got > want+1 || got < want {
						t.Errorf("used %d, want %d", got, want)
					}
				})
			})
		}
	}
}

// The meter drops what it knows of a window that no longer counts, even without a store.
func TestLocalSpendingOfFinishedWindowsIsDropped(t *testing.T) {
	suite.LongWithRace(t)
	cutOff(t, longLimit(algorithms.FixedWindow, 100, "75s"), func(t *testing.T, c *cluster, n *running,
		cut, reconnect func()) {
		cut()
		n.spends(t, request("a"), 20)
		time.Sleep(5 * time.Minute)
		if got := n.limiter.Local().Status(); got != (local.Status{Expired: 20}) {
			t.Errorf("kept %+v", got)
		}
		reconnect()
	})
}

// A store that comes back without its data is charged once with what was spent meanwhile. That
// comes after what was used before the loss.
func TestLocalSpendingAfterALoss(t *testing.T) {
	for _, kind := range windows {
		t.Run(string(kind), func(t *testing.T) {
			direct := ""
			r := startRelay(t)
			inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
				server := c.servers["us"]
				direct = server.URL
				c.behind(r, "us")
				behind := c.servers["us"]
				n := c.start("us/n1", documents.Parse(t, 1, alone, longLimit(kind, 200, "10m")))
				q := request("a")
				for range 10 {
					n.check(t, q)
				}
				r.lead("")
				n.spends(t, q, 30)
				c.servers["us"] = server
				c.flushAll("us")
				c.servers["us"] = behind
				r.lead(direct)
				c.within(3*time.Second, "the spending to be booked",
					func() bool { return n.limiter.Local().Status().Unbooked == 0 })
				if got := n.state(t, q).Used; got != 40 {
					t.Errorf("used %d, of which 10 through the store and 30 without it", got)
				}
				// After another loss, what the node saw of the bucket includes what was charged. It
				// is not known whether another node's view does, so it is charged again rather than
				// not at all.
				c.servers["us"] = server
				c.flushAll("us")
				c.servers["us"] = behind
				n.check(t, request("other"))
				time.Sleep(2 * time.Second)
				if got := n.state(t, q).Used; got < 40 || got > 70 {
					t.Errorf("used %d after another loss, 40 were admitted", got)
				}
			})
		})
	}
}

// A node that ends before the store has charged its local spends loses them: that much is admitted
// on top, at most its part of each window. It does not start again, nor spend its part anew, before
// it reaches its store.
func TestLocalSpendingEndsWithTheNode(t *testing.T) {
	cutOff(t, longLimit(algorithms.FixedWindow, 200, "10m"), func(t *testing.T, c *cluster, n *running,
		cut, reconnect func()) {
		q := request("a")
		for range 10 {
			n.check(t, q)
		}
		cut()
		n.spends(t, q, 30)
		d := n.tenure.Rules().Document
		c.stop("us/n1")
		if again, err := c.tryStart("us/n1", d); err == nil {
			t.Fatalf("it serves without its store: %+v", again.check(t, q))
		}
		reconnect()
		n = c.start("us/n1", d)
		if got := n.state(t, q).Used; got != 10 {
			t.Errorf("used %d, 10 were admitted through the store", got)
		}
	})
}

// A document that comes into force before local spends are charged does not prevent the charge. A
// spend of a limit that the document no longer has is not charged.
func TestLocalSpendingUnderANewDocument(t *testing.T) {
	gone := "name: gone, domain: gone, limit: 100, window: 10m, lending_limit: 0"
	r := startRelay(t)
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		reconnect := c.behind(r, "us")
		n := c.start("us/n1", documents.Parse(t, 1, alone, longLimit(algorithms.FixedWindow, 200,
			"10m"), gone))
		q := request("a")
		n.check(t, q)
		generation := n.Status().Generation
		r.lead("")
		n.spends(t, q, 30)
		n.spends(t, admit.Request{Domain: "gone", Descriptors: q.Descriptors, Cost: 1}, 10)
		reconnect()
		// Time stands still while a Redis is asked: no booking comes before the document.
		suite.Must(t, n.Adopt(t.Context(),
			documents.Parse(t, 2, alone, longLimit(algorithms.FixedWindow, 300, "10m"))))
		time.Sleep(2 * time.Second)
		if got := n.state(t, q); got.Used != 31 || got.Entitlement != 300 ||
			n.limiter.Local().Status().Unbooked != 0 || n.Status().Generation != generation {
			t.Errorf("state %+v, without the store %+v", got, n.limiter.Local().Status())
		}
	})
}

// A bucket that vanished from the store while it was out of reach is noticed by the charge of local
// spends, too.
func TestLocalSpendingOfADeletedBucket(t *testing.T) {
	r := startRelay(t)
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		server := c.servers["us"]
		reconnect := c.behind(r, "us")
		n := c.start("us/n1", documents.Parse(t, 1, alone, longLimit(algorithms.FixedWindow, 200,
			"10m")))
		q := request("a")
		for range 50 {
			n.check(t, q)
		}
		r.lead("")
		n.spends(t, q, 30)
		c.servers["us"] = server
		c.delete("us", n, "long", q)
		reconnect()
		c.within(3*time.Second, "the spending to be booked",
			func() bool { return n.limiter.Local().Status().Unbooked == 0 })
		if got := n.state(t, q).Used; got != 80 {
			t.Errorf("used %d, of which 50 through the store and 30 without it", got)
		}
	})
}
