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

// The sliding kinds admit no more than one part in any time as long as a window, whenever it
// begins.
func TestWithoutStoreSlidingWindows(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog} {
		bubble.Test(t, func(t *testing.T) {
			n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
				fmt.Sprintf("name: part, algorithm: %s, limit: 100, window: 1m, lending_limit: 0.5",
					kind)))
			var admitted []time.Time
			for range 180 {
				time.Sleep(time.Second)
				for range 3 {
					if n.askWithoutStore(request("a"), true).Allowed {
						admitted = append(admitted, time.Now())
					}
				}
			}
			first := 0
			for last, at := range admitted {
				for !admitted[first].After(at.Add(-time.Minute)) {
					first++
				}
				if in := last - first + 1; in > 20 {
					t.Fatalf("%s: %d admitted in a minute, the part is 20", kind, in)
				}
			}
			if len(admitted) < 30 {
				t.Errorf("%s: %d admitted in three minutes", kind, len(admitted))
			}
		})
	}
}

// What was spent in a window without the store still counts in the next one where use fades, so it is
// kept for the store until that is over.
func TestWithoutStoreSpendingIsKeptForTheNextWindow(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog} {
		bubble.Test(t, func(t *testing.T) {
			n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
				fmt.Sprintf("name: part, algorithm: %s, limit: 100, window: 1m, lending_limit: 0.5",
					kind)))
			if d := n.askWithoutStore(request("a"), true); !d.Allowed {
				t.Fatalf("%+v", d)
			}
			for _, kept := range []int{1, 1, 0} { // 50, 100 and 150 s later
				time.Sleep(50 * time.Second)
				n.fallback.forget(time.Now())
				if all := n.fallback.unsettled(9); len(all) != kept {
					t.Errorf("%s: %d are kept for the store %v into the minute, want %d", kind, len(all),
						time.Since(time.Now().Truncate(time.Minute)), kept)
				}
			}
		})
	}
}
