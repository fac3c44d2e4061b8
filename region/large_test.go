package region_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestALargeCostIsAdmittedWhenItComesAgain: a cost above the region's part is denied with a time,
// as long as others may lend what it lacks, and admitted to a caller who comes again then.
func TestALargeCostIsAdmittedWhenItComesAgain(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window_counter", "sliding_window_log"} {
		for _, units := range []quantity.Units{500, 900} {
			t.Run(fmt.Sprint(algorithm, " ", units), func(t *testing.T) {
				started(t, documents.Parse(t, 1, threeRegions, "name: hour, limit: 1000, window: 1h, algorithm: "+algorithm),
					[]string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
						us := c.running["us/n1"]
						beginCell()
						first := us.check(t, cost("a", units))
						if first.Allowed || first.Reason != admit.OverLimit || first.RetryAfter <= 0 || first.RetryAfter > 2*time.Second {
							t.Fatalf("%d of a part of 400: %+v", units, first)
						}
						time.Sleep(first.RetryAfter)
						if again := us.check(t, cost("a", units)); !again.Allowed {
							t.Errorf("%d once more, after %v: %+v", units, first.RetryAfter, again)
						}
						if got := us.check(t, cost("a", 971)); got.Reason != admit.ExceedsRegionCapacity || got.RetryAfter >= 0 {
							t.Errorf("971, of which others keep one: %+v", got)
						}
					})
			})
		}
	}
}
