package region

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// Of a request's buckets several are deleted: one after the other is restored with its use, and within the request.
func TestSeveralBucketsOfARequestAreDeleted(t *testing.T) {
	limits := []string{"name: hour, limit: 100, window: 1h", "name: day, limit: 100, window: 24h"}
	for name, deleted := range map[string][]string{"the first": {"hour"}, "the second": {"day"}, "both": {"hour", "day"}} {
		t.Run(name, func(t *testing.T) {
			started(t, document(t, 1, alone, limits...), []string{"us/n1"}, func(t *testing.T, c *cluster) {
				n, q := c.running["us/n1"], cost("a", 60)
				if d := n.check(t, q); !d.Allowed {
					t.Fatalf("%+v", d)
				}
				for _, limit := range deleted {
					c.delete("us", n, limit, q)
				}
				q.Cost = 1
				if d := n.check(t, q); d.Reason != WithinLimit {
					t.Errorf("%+v", d)
				}
				for _, limit := range []string{"hour", "day"} {
					if used := n.used(t, limit, q); used != 61 {
						t.Errorf("%s: %d used, want 61", limit, used)
					}
				}
			})
		})
	}
}

// A bucket that takes ten days to fill is known to be there for as long. Another document fills it within hours, so it
// expires sooner: that is no deletion, and it is full then.
func TestABucketThatExpiresSoonerWasNotDeleted(t *testing.T) {
	tokens := "name: tokens, algorithm: token_bucket, window: 24h, burst: 100, on_store_failure: deny, limit: "
	started(t, document(t, 1, alone, tokens+"10"), []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n, q := c.running["us/n1"], cost("a", 100)
		if d := n.check(t, q); !d.Allowed {
			t.Fatalf("%+v", d)
		}
		if err := n.Adopt(t.Context(), document(t, 2, alone, tokens+"1000000")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		n.check(t, q)
		time.Sleep(microseconds(algorithms.MaxClockStep) + time.Hour)
		if d := n.check(t, q); !d.Allowed {
			t.Errorf("hours later: %+v", d)
		}
	})
}
