package admit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/memory/store"
)

// The caller is told that the node has done its part before the store has answered.
func TestHandover(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, s := busyNode(t)
		s.stop(true)
		begun, told := time.Now(), time.Duration(-1)
		_, err := n.Check(OnHandover(t.Context(), func() { told = time.Since(begun) }),
			request("a"))
		if err != nil || told != 0 || time.Since(begun) == 0 {
			t.Errorf("told after %v, answered after %v, %v", told, time.Since(begun), err)
		}
	})
}

// A caller with much work waiting for the store is busy until that is decided. No other caller is.
func TestBusy(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, _ := busyNode(t)
		batch := make([]Request, 100)
		for i := range batch {
			batch[i] = request(distinct(i))
			batch[i].Domain, batch[i].Caller = "flood", "flood"
		}
		if n.queue.Busy("flood", 50*time.Millisecond) {
			t.Error("nothing waits")
		}
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := n.CheckBatch(t.Context(), batch); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if !n.queue.Busy("flood", 50*time.Millisecond) {
			t.Errorf("not busy: %+v", n.queue.lanes.all[0].load())
		}
		if n.queue.Busy("victim", 50*time.Millisecond) {
			t.Error("a caller for whom nothing waits")
		}
		all.Wait()
		if n.queue.Busy("flood", 50*time.Millisecond) {
			t.Error("everything is decided")
		}
	})
}

// A process that notices deadlines too late may not have read its store's replies either. So it
// treats the store as busy, not as out of reach, until no reply came for too long.
func TestStarvedNode(t *testing.T) {
	const deadline = 50 * time.Millisecond
	late := &store.Error{Err: context.DeadlineExceeded}
	for _, tc := range []struct {
		name        string
		heard, sent time.Duration // before now
		busy        bool
	}{
		{"its deadline was heard in time", 300 * time.Millisecond, deadline, false},
		{"it was heard late, and so may replies be", 300 * time.Millisecond,
			deadline + 10*time.Millisecond, true},
		{"it was heard very late", 1500 * time.Millisecond, time.Second, true},
		{"nothing came for seconds", 3 * time.Second, time.Second, false},
	} {
		n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere, overloadLimits...))
		n.queue.lanes.all[0].pace = newPace(deadline, underWay)
		now := time.Now().Add(time.Minute)
		n.queue.breakers.hear(store.Whole, now.Add(-tc.heard))
		err := n.queue.lanes.all[0].unreached(store.Whole, now.Add(-tc.sent), now, late)
		if isOverload(err) != tc.busy || n.queue.breakers.tripped(store.Whole) == tc.busy {
			t.Errorf("%s: %v, tripped %v", tc.name, err, n.queue.breakers.tripped(store.Whole))
		}
	}
}

// A node that sends requests and is woken too late is starved, until starvedLasts deadlines after
// that. A node that has nothing to send sleeps.
func TestWakes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const deadline = 50 * time.Millisecond
		n, _ := busyNode(t)
		w := n.queue.lanes.wakes
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { w.watch(ctx, deadline) })
		synctest.Wait()
		if w.due.Load() != 0 || w.starved(time.Now(), deadline) {
			t.Error("nothing was sent")
		}
		if d, err := n.Check(t.Context(), request("a")); err != nil || !d.Allowed {
			t.Errorf("%+v, %v", d, err)
		}
		synctest.Wait()
		if w.due.Load() == 0 || w.starved(time.Now(), deadline) {
			t.Error("a request was sent, and nobody is late")
		}
		if at := time.Now().Add(deadline/wakeParts + deadline/starvedPart + 1); !w.starved(at,
			deadline) {
			t.Error("it should have been woken")
		}
		time.Sleep(time.Second)
		if w.due.Load() != 0 {
			t.Error("nothing was sent for a second")
		}
		w.late.Store(int64(time.Since(since)))
		if !w.starved(time.Now().Add(starvedLasts*deadline-1), deadline) ||
			w.starved(time.Now().Add(starvedLasts*deadline), deadline) {
			t.Error("it was woken too late just now")
		}
		cancel()
		watching.Wait()
	})
}
