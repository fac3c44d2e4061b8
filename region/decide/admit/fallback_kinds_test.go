package admit

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
)

// Without the store a node admits in each window its part of the units that the region cannot lend.
// For kinds whose use fades over two windows that is half. For a limit in home mode it is nothing,
// because all of it may be lent.
func TestWithoutStorePartOfEachKind(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		for _, tc := range []struct {
			fields string
			nodes  int
			part   int // of the entitlement of 400; of the sliding kinds, half
		}{
			{"limit: 1000, lending_limit: 0", 1, 400},
			{"limit: 1000, lending_limit: 0.5", 1, 200},
			{"limit: 1000, lending_limit: 0.5", 3, 66},
			{"limit: 1000", 1, 20},
			{"limit: 1000", 21, 0},
			{"limit: 3, lending_limit: 0", 1, 0},
			{"limit: 3", 1, 0},
		} {
			if kind.Sliding() {
				tc.part /= 2
			}
			t.Run(fmt.Sprint(kind, ", ", tc.fields, ", ", tc.nodes), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					n := unstarted(t, tc.nodes, documents.Parse(t, 1, hereAndThere,
						fmt.Sprintf("name: part, algorithm: %s, window: 1m, %s", kind, tc.fields)))
					for window := range 3 { // each begins with half of its time gone
						time.Sleep(30 * time.Second)
						got := 0
						for account := range 2 {
							if got = n.fits(t, request(fmt.Sprint(account)),
								tc.part+10); got != tc.part {
								t.Errorf("window %d, account %d: %d admitted, want %d", window,
									account, got, tc.part)
							}
						}
						d := n.askWithoutStore(request("0"), true)
						if d.Allowed || d.Reason != StoreFailureLocal || d.Algorithm != kind ||
							d.Remaining != 0 || d.ResetAfter != 30*time.Second {
							t.Errorf("window %d: %+v", window, d)
						}
						if never := tc.part == 0; (d.RetryAfter < 0) != never || !never &&
							d.RetryAfter != 30*time.Second {
							t.Errorf("window %d: retry after %v", window, d.RetryAfter)
						}
						time.Sleep(30 * time.Second)
					}
				})
			})
		}
	}
}
