package admit

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
)

// A store that comes back is not charged with the reserve: its whole part is left.
func TestReserveLeavesTheStoreAlone(t *testing.T) {
	started(t, documents.Parse(t, 1, alone,
		"name: long, limit: 400, window: 1m, local_reserve: 0.2"), []string{"us/n1"},
		func(t *testing.T, c *cluster) {
			us := c.running["us/n1"]
			nextCell(time.Minute)
			us.check(t, request("a"))
			c.setDown(true)
			for range 3 {
				if d := us.check(t, request("a")); !d.Allowed || d.Reason != StoreFailureLocal {
					t.Errorf("without the store: %+v", d)
				}
			}
			if got := us.local.Status(); got.Units != 3 || got.Unbooked != 0 {
				t.Errorf("admitted without the store: %+v", got)
			}
			c.setDown(false)
			time.Sleep(5 * time.Second)
			if d := us.check(t, request("a")); d.Reason != WithinLimit || d.Remaining != 318 {
				t.Errorf("with the store again: %+v", d)
			}
			if err := us.local.BookAll(t.Context()); err != nil {
				t.Error(err)
			}
			if got := us.inspect(t, "long", request("a")); got.Used != 2 || got.Entitlement != 320 {
				t.Errorf("in the store: %+v", got)
			}
		})
}
