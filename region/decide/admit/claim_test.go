package admit

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
)

// A restarted node does not spend its part of a window twice. If it spent of the part before, it
// spends no more, because it does not know how much it spent. Of a bucket and window of which it
// spent nothing it spends the whole part.
func TestALifeSpendsNoPartTwice(t *testing.T) {
	for name, fields := range map[string]string{"local part": "lending_limit: 0.5",
		"reserve": "local_reserve: 0.5"} {
		t.Run(name, func(t *testing.T) {
			d := documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m, "+fields)
			started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
				q, other := request("a"), request("b")
				if got := c.running["us/n1"].fits(t, q, 10); got != 10 {
					t.Fatalf("%d of 10 admitted", got)
				}
				c.running["us/n1"].askWithoutStore(other, false)
				for life := range 2 {
					c.stop("us/n1")
					n := c.start("us/n1", d)
					if got := n.fits(t, q, 1); got != 0 {
						t.Errorf("life %d admits more of what was spent of before", life+2)
					}
				}
				n := c.running["us/n1"]
				if got := n.fits(t, other, 100); got != 50 {
					t.Errorf("%d admitted of a bucket that was only peeked at, want 50", got)
				}
				time.Sleep(time.Minute)
				if got := n.fits(t, q, 100); got != 50 {
					t.Errorf("%d admitted in the next window, want 50", got)
				}
			})
		})
	}
}

// Without a journal to remember it, nothing is spent.
func TestNothingIsSpentThatCannotBeRemembered(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m, lending_limit: 0.5")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		if err := n.journal.Close(); err != nil {
			t.Fatal(err)
		}
		if d := n.askWithoutStore(request("a"), true); d.Allowed {
			t.Errorf("%+v", d)
		}
	})
}

// What a call spends without the store is claimed in one commit: of all requests of a batch, also
// those of later parts, and of all limits of a request. What is denied is not claimed.
func TestACallIsClaimedInOneCommit(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m, lending_limit: 0.5",
		"name: address, key: [address], limit: 100, window: 1m, lending_limit: 0.5",
		"name: dear, domain: dear, limit: 2, window: 1m, lending_limit: 0.5",
		"name: closed, domain: closed, limit: 100, window: 1m, on_store_failure: deny")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		closed := request("a")
		closed.Domain = "closed"
		c.setDown(true)
		n.check(t, closed) // from then on the node knows
		commits := func(what string, want, claims int, do func()) {
			t.Helper()
			before := n.journal.Stats()
			do()
			after := n.journal.Stats()
			if got, kept := int(after.Commits-before.Commits), after.Checkpoints-before.Checkpoints; got != want || int(kept) != claims {
				t.Errorf("%s: %d commits of %d claims, want %d of %d", what, got, kept, want, claims)
			}
		}
		var all []Request
		for i := range 300 {
			all = append(all, request(fmt.Sprint("account-", i)))
		}
		dear := cost("a", 2)
		dear.Domain = "dear"
		all = append(all, closed, dear)
		commits("a batch", 1, 300, func() {
			for i, d := range n.batch(t, all...) {
				if d.Allowed != (i < 300) {
					t.Errorf("request %d: %+v", i, d)
				}
			}
		})
		commits("the same again", 0, 0, func() { n.batch(t, all...) })
		both := request("b")
		both.Descriptors["address"] = "10.0.0.1"
		commits("a request with two limits", 1, 2, func() {
			if d, err := n.Check(t.Context(), both); err != nil || !d.Allowed {
				t.Errorf("%+v, %v", d, err)
			}
		})
	})
}
