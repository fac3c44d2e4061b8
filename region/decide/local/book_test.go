package local

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/bubble"
)

// The store is told of all that was spent, in turns of bounded length. A spend that it cannot
// charge does not keep the others waiting.
func TestUnbookedTakesTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := with(t, 1, "name: minute, limit: 100, window: 1m, lending_limit: 0",
			"name: hour, domain: slow, limit: 100, window: 1h, lending_limit: 0")
		const accounts, turn = 50, 7
		for i := range accounts {
			for _, domain := range []string{"api", "slow"} {
				n.Spend(n.charges(domain, map[string]string{"account": fmt.Sprint(i)}, 1), true)
			}
		}
		told := map[string]int{}
		for range 2 * (2*accounts/turn + 2) {
			all := n.unsettled(turn)
			if len(all) > turn {
				t.Fatalf("%d at a time, at most %d may be", len(all), turn)
			}
			for _, b := range all {
				if told[b.bucket]++; strings.Contains(b.bucket, ",1:0,") ||
					strings.Contains(b.bucket, ",1:1,") {
					continue // the store cannot charge it
				}
				if got := n.settled(b); got != 1 {
					t.Errorf("%d units of %s booked", got, b.bucket)
				}
			}
		}
		if got := n.Status(); len(told) != 2*accounts || got.Unbooked != 4 ||
			got.Units != 2*accounts {
			t.Errorf("told of %d of %d buckets, then %+v", len(told), 2*accounts, got)
		}
		n.BookAnew()
		if got := n.Status(); got.Unbooked != 2*accounts ||
			len(n.unsettled(1000)) != 2*accounts {
			t.Errorf("after a loss %+v", got)
		}
	})
}
