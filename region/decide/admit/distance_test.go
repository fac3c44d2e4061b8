package admit

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
)

// What the way to a store takes is not mistaken for its work, though nothing but round trips that
// overlap shows it: a store that is far decides nearly all that its callers ask for, too.
func TestDistantStore(t *testing.T) {
	for way, least := range map[time.Duration]int{3 * time.Millisecond: 6_000,
		8 * time.Millisecond: 2_500} {
		bubble.Test(t, func(t *testing.T) {
			n, s := busyNode(t)
			s.Script, s.Join, s.Trip = 20*time.Microsecond, 2*time.Microsecond, way
			var learning, learned outcomes
			var callers sync.WaitGroup
			until := time.Now().Add(1500 * time.Millisecond)
			for i := range 64 {
				callers.Go(func() {
					for begun := time.Now(); begun.Before(until); begun = time.Now() {
						of := &learning
						if until.Sub(begun) <= time.Second/2 {
							of = &learned
						}
						of.check(t, n, request(strconv.Itoa(i)))
						time.Sleep(time.Until(begun.Add(time.Millisecond)))
					}
				})
			}
			callers.Wait()
			if learned.stored < least || learned.stored*100 < learned.all*99 {
				t.Errorf("%v away: %d of %d decided in time in half a second, want %d: %v, %+v", way,
					learned.stored, learned.all, least, learned.reason, n.queue.Load())
			}
		})
	}
}
