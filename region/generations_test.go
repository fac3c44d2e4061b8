package region_test

import (
	"testing"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/documents"
)

// TestAForgedRecallStopsNoLending: if calls between regions are in plain text, anybody can call in
// the name of any node. A question of generation 2^51 in the name of our region or of a peer does
// not stop lending or borrowing.
func TestAForgedRecallStopsNoLending(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions, "name: m, limit: 1000, window: 1h")
	started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		us.check(t, request("a"))
		for _, n := range c.running {
			n.check(t, request("a"))
			for _, region := range []string{"us", "eu", "ap"} {
				id := string(n.tenure.Rules().Document.Limits[0].Bucket(request("a").Descriptors))
				all, err := n.rights.Answer(t.Context(), exchange.Question{From: region,
					Node: "forger", Generation: 1 << 51,
					Buckets: []exchange.Doubt{{Bucket: id}}})
				if err != nil || len(all.All) != 1 || !all.All[0].Refused {
					t.Errorf("a question in the name of %s: %+v, %v", region, all, err)
				}
			}
		}
		admitted := 0
		for range 900 {
			if us.check(t, request("a")).Allowed {
				admitted++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if s := us.Status().Exchange; admitted < 650 || s.Borrowed < 300 ||
			s.GenerationsRefused != 3 || s.Fenced {
			t.Errorf("%d of 900 admitted, %d borrowed, %d generations refused, fenced %t", admitted,
				s.Borrowed, s.GenerationsRefused, s.Fenced)
		}
	})
}
