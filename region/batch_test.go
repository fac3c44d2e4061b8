package region_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/decide/admit"
)

// batch has a node decide requests at the same time.
func (n *running) batch(t *testing.T, all ...admit.Request) []admit.Decision {
	t.Helper()
	d, err := n.CheckBatch(t.Context(), all)
	if err != nil || len(d) != len(all) {
		t.Fatalf("%d decisions of %d, %v", len(d), len(all), err)
	}
	return d
}

// For a request of a batch, too, lacking rights are borrowed, at the same time wherever it stands,
// and a lost bucket is restored.
func TestBatchBorrowsAndRecovers(t *testing.T) {
	d := documents.Parse(t, 1, halves,
		"name: hour, on_exhausted: borrow, limit: 100, window: 1h, lending_limit: 1")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		n.check(t, cost("lost", 20))
		begun := time.Now()
		admitted := func(all []admit.Decision) {
			t.Helper()
			for i, d := range all {
				if !d.Allowed || d.Reason != admit.WithinLimit {
					t.Errorf("request %d: %+v", i, d)
				}
			}
		}
		all := []admit.Request{cost("a", 80)}
		for i := range 500 {
			all = append(all, cost("c"+strconv.Itoa(i), 1))
		}
		admitted(n.batch(t, append(all, cost("b", 70))...))
		if took := time.Since(begun); took < 2*oneWay || took > 3*oneWay {
			t.Errorf("it took %v: they did not borrow at the same time", took)
		}
		c.delete("us", n, "hour", request("lost"))
		admitted(n.batch(t, cost("d", 1), cost("lost", 1)))
		if used := n.used(t, "hour", request("lost")); used != 21 {
			t.Errorf("%d used of the bucket that was deleted, want 21", used)
		}
	})
}
