//go:build !race

package region_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
)

// putBack returns three documents: a limit nearly all of which is us's, none of that name in the
// domain, and the limit again, nearly all of which is eu's.
func putBack(t *testing.T, window string, between ...string) (all [3]*policy.Document) {
	limit := func(us, eu int) string {
		return fmt.Sprintf("name: l, limit: 1000, window: %s, lending_limit: 0, weights: {us: %d, eu: %d}", window, us, eu)
	}
	const other = "name: other, domain: elsewhere, limit: 5, window: 1s"
	all[0] = documents.Parse(t, 1, halves, limit(99, 1), other)
	all[1] = documents.Parse(t, 2, halves, append(between, other)...)
	all[2] = documents.Parse(t, 3, halves, limit(1, 99), other)
	return all
}

// TestALimitPutBackWhileARegionIsCutOff: us knows only the document in which it has nearly all.
func TestALimitPutBackWhileARegionIsCutOff(t *testing.T) {
	for name, between := range map[string][]string{"out": nil, "to another domain": {"name: l, domain: moved, limit: 1000, window: 2s"}} {
		t.Run(name, func(t *testing.T) {
			all := putBack(t, "2s", between...)
			started(t, all[0], []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
				us, eu := c.running["us/n1"], c.running["eu/n1"]
				c.Network.Isolate("us/n1", time.Hour)
				for _, d := range all[1:] {
					suite.Must(t, eu.Adopt(t.Context(), d))
					time.Sleep(5 * time.Second)
				}
				for range 3 {
					nextCell(2 * time.Second)
					here, _ := us.drain(t, request("a"), 1100)
					there, last := eu.drain(t, request("a"), 1100)
					if here != 990 || there != 10 {
						t.Errorf("us admitted %d, eu %d of 1,000, want 990 and 10; then %+v", here, there, last)
					}
				}
				c.Network.HealAll()
				time.Sleep(8 * time.Second)
				nextCell(2 * time.Second)
				here, _ := us.drain(t, request("a"), 1100)
				there, _ := eu.drain(t, request("a"), 1100)
				if here != 10 || there != 990 {
					t.Errorf("later us admitted %d, eu %d, want 10 and 990", here, there)
				}
			})
		})
	}
}

// TestALimitPutBackAtOnce: both regions hear of everything, within one window.
func TestALimitPutBackAtOnce(t *testing.T) {
	all := putBack(t, "10m")
	started(t, all[0], []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us, eu := c.running["us/n1"], c.running["eu/n1"]
		before, _ := us.drain(t, request("a"), 1100)
		for _, d := range all[1:] {
			suite.Must(t, us.Adopt(t.Context(), d))
			time.Sleep(5 * time.Second)
		}
		after, _ := us.drain(t, request("a"), 1100)
		there, last := eu.drain(t, request("a"), 1100)
		if before != 990 || after != 0 || there != 10 {
			t.Errorf("us admitted %d and %d, eu %d of 1,000, want 990, 0 and 10; then %+v", before, after, there, last)
		}
	})
}
