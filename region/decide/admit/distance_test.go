package admit

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
)

// What the way to a store takes is not mistaken for its work, though nothing but round trips that
// overlap shows it: a store that is far decides nearly all that its callers ask for, too.
func TestDistantStore(t *testing.T) {
	for way, least := range map[time.Duration]int{3 * time.Millisecond: 6_000,
		8 * time.Millisecond: 2_500} {
		bubble.Test(t, func(t *testing.T) {
			n, s := busyNode(t)
			s.script, s.join, s.trip = 20*time.Microsecond, 2*time.Microsecond, way
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

// A round trip with little work is made alone: others are held back meanwhile, but not for ever.
func TestHeldBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere, "name: minute, limit: 100, window: 1m"))
		b, r := n.queue.lanes.all[0], n.tenure.Rules()
		for i := range 9 {
			w := waiting{rules: r, applied: r.Match(asked(request(strconv.Itoa(i)))), cost: 1,
				commit: true}.waits(time.Minute)
			if err := b.enqueue(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
		takes := func(underWay int64, want int) {
			t.Helper()
			b.pace.much, b.sent, b.trips = littleEvery, underWay, 2
			if got := len(b.take()); got != want || want == 0 && b.trips != 1 {
				t.Errorf("%d requests, want %d; %d round trips", got, want, b.trips)
			}
		}
		takes(scriptWork, 0)
		time.Sleep(n.deadline/maxBase - time.Nanosecond)
		takes(scriptWork, 0)
		time.Sleep(time.Nanosecond)
		takes(scriptWork, little/scriptWork)
		takes(0, little/scriptWork)
		if b.pace.due() || len(b.take()) <= little/scriptWork {
			t.Error("the round trip after it carries little, too")
		}
	})
}
