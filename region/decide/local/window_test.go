package local

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/bubble"
)

// The sliding kinds admit no more than one part in any time as long as a window, whenever it
// begins.
func TestWithoutStoreSlidingWindows(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog} {
		bubble.Test(t, func(t *testing.T) {
			n := with(t, 1, fmt.Sprintf("name: part, algorithm: %s, limit: 100, window: 1m, lending_limit: 0.5",
				kind))
			var admitted []time.Time
			for range 180 {
				time.Sleep(time.Second)
				for range 3 {
					if n.asks("a", 1).Admitted {
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
			n := with(t, 1, fmt.Sprintf("name: part, algorithm: %s, limit: 100, window: 1m, lending_limit: 0.5",
				kind))
			if d := n.asks("a", 1); !d.Admitted {
				t.Fatalf("%+v", d)
			}
			for _, kept := range []int{1, 1, 0} { // 50, 100 and 150 s later
				time.Sleep(50 * time.Second)
				n.Forget(time.Now())
				if all := n.unsettled(9); len(all) != kept {
					t.Errorf("%s: %d are kept for the store %v into the minute, want %d", kind, len(all),
						time.Since(time.Now().Truncate(time.Minute)), kept)
				}
			}
		})
	}
}
