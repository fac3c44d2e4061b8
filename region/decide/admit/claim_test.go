package admit

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
)

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
