package region_test

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/store"
)

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
