package region_test

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/decide/admit"
)

// In a cluster whose stores are gone, every algorithm serves the node's part, and a leaky_bucket
// delays nobody.
func TestStoreOutOfReachOfEachKind(t *testing.T) {
	var limits []string
	for _, kind := range algorithms.Kinds {
		limits = append(limits, limitOf(kind, 100, ", lending_limit: 0.5, domain: "+nameOf(kind)))
	}
	started(t, documents.Parse(t, 1, halves, limits...), []string{"us/n1", "us/n2"},
		func(t *testing.T, c *cluster) {
			c.loseStore("us")
			nextCell(10 * time.Second)
			for _, kind := range algorithms.Kinds {
				q, part := request("a"), 12 // floor((50 - 25) / 2)
				q.Domain = nameOf(kind)
				if kind.Sliding() {
					part = 6
				}
				for _, name := range []string{"us/n1", "us/n2"} {
					n := c.running[name]
					if admitted, last := n.drain(t, q, 50); admitted != part ||
						last.Reason != admit.StoreFailureLocal || last.RetryAfter != 9*time.Second {
						t.Errorf("%s, %s: %d admitted, want %d; then %+v", name, kind, admitted,
							part, last)
					}
				}
			}
		})
}
