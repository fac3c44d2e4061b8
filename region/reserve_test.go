package region_test

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/decide/admit"
)

// All regions use up their stores and then, cut off from them, their reserves: together exactly the
// limit.
func TestReserveAndStoresTogether(t *testing.T) {
	nodes := []string{"us/n1", "us/n2", "eu/n1", "eu/n2"}
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			part := 20 // of two nodes' 40, of F = 200
			if kind != algorithms.FixedWindow {
				part = 10
			}
			started(t, documents.Parse(t, 1, halves, limitOf(kind, 400, ", local_reserve: 0.2")),
				nodes, func(t *testing.T, c *cluster) {
					nextCell(10 * time.Second)
					admitted := 0
					for _, name := range []string{"us/n1", "eu/n2"} {
						first := c.running[name].check(t, request("a"))
						if first.Entitlement != 200 || first.Share != 160 ||
							first.LimitUnits != 400 || first.Remaining != 159 {
							t.Errorf("%s: %+v", name, first)
						}
						got, _ := c.running[name].drain(t, request("a"), 500)
						admitted += 1 + got
					}
					if admitted != 320 {
						t.Errorf("%d admitted by the stores, which hold 320", admitted)
					}
					c.cutOff(t)
					time.Sleep(held.AskAgain) // until then the nodes go by the last denial
					for _, name := range nodes {
						got, last := c.running[name].drain(t, request("a"), 500)
						if admitted += got; got != part || last.Reason != admit.StoreFailureLocal ||
							last.Entitlement != 200 {
							t.Errorf("%s: %d admitted without the store, want %d; then %+v", name,
								got, part, last)
						}
					}
					if want := 320 + 4*part; admitted != want {
						t.Errorf("%d admitted in all, want %d", admitted, want)
					}
				})
		})
	}
}

// A region borrows at most what the other stores hold: reserves are never lent.
func TestReserveIsNotLent(t *testing.T) {
	nodes := []string{"us/n1", "eu/n1"}
	started(t, documents.Parse(t, 1, halves, limitOf(algorithms.FixedWindow, 400,
		", local_reserve: 0.2, lending_limit: 1")), nodes, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		nextCell(10 * time.Second)
		var admitted quantity.Units
		for _, units := range us.load(t, request("a"), 2, 5*time.Second) {
			admitted += units
		}
		if admitted <= 200 || admitted > 320 {
			t.Errorf("us: %d admitted, want more than its entitlement and at most what the stores hold, 320", admitted)
		}
		got, _ := c.running["eu/n1"].drain(t, request("a"), 500)
		admitted += quantity.Units(got)
		c.cutOff(t)
		time.Sleep(held.AskAgain) // until then the nodes go by the last denial
		for _, name := range nodes {
			got, _ := c.running[name].drain(t, request("a"), 500)
			if admitted += quantity.Units(got); got != 40 {
				t.Errorf("%s: %d admitted without the store, want 40", name, got)
			}
		}
		if admitted != 400 {
			t.Errorf("%d admitted in all, the limit is 400", admitted)
		}
	})
}

// A cost above what the stores hold together but within the limit is never admitted, and causes no
// borrowing.
func TestReserveMakesLargeCostsImpossible(t *testing.T) {
	started(t, documents.Parse(t, 1, halves, limitOf(algorithms.FixedWindow, 400,
		", local_reserve: 0.2, on_exhausted: borrow")), []string{"us/n1", "eu/n1"},
		func(t *testing.T, c *cluster) {
			us := c.running["us/n1"]
			nextCell(10 * time.Second)
			for range 20 {
				if d := us.check(t, cost("a", 321)); d.Allowed || d.Reason != admit.Never {
					t.Fatalf("%+v", d)
				}
				time.Sleep(100 * time.Millisecond)
			}
			if got := us.counter(t, "units_borrowed"); got != 0 {
				t.Errorf("%d units borrowed for it", got)
			}
			if d := us.check(t, cost("a", 200)); !d.Allowed {
				t.Errorf("a cost that the stores hold together: %+v", d)
			}
		})
}

// cutOff ends all stores.
func (c *cluster) cutOff(t *testing.T) {
	t.Helper()
	for region := range c.servers {
		c.loseStore(region)
	}
}
