package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/region/memory/store"
)

// A pipeline that is late while the store answers others means that the store is busy. A pipeline
// that is late while nothing else is answered, or that is refused, does not mean that.
func TestLateWhileRepliesFlow(t *testing.T) {
	late := &store.Error{Err: context.DeadlineExceeded}
	for _, tc := range []struct {
		name        string
		heard, sent time.Duration // before now; heard 0: never
		err         error
		busy        bool
	}{
		{"another was answered just now", time.Millisecond, 50 * time.Millisecond, late, true},
		{"another was answered before it was sent", 51 * time.Millisecond, 50 * time.Millisecond,
			late, false},
		{"nothing has come for more than half a deadline", 26 * time.Millisecond,
			50 * time.Millisecond, late, false},
		{"nothing has ever come", 0, 50 * time.Millisecond, late, false},
		{"it was refused", time.Millisecond, 50 * time.Millisecond,
			&store.Error{Err: context.Canceled}, false},
	} {
		n := idle(t, minute)
		n.lane().pace = newPace(50*time.Millisecond, underWay)
		now := time.Now().Add(time.Minute)
		if tc.heard > 0 {
			n.breakers.hear(store.Whole, now.Add(-tc.heard))
		}
		err := n.lane().unreached(store.Whole, now.Add(-tc.sent), now, tc.err)
		if IsOverload(err) != tc.busy || n.breakers.tripped(store.Whole) == tc.busy {
			t.Errorf("%s: %v, tripped %v", tc.name, err, n.breakers.tripped(store.Whole))
		}
	}
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
		n := idle(t, minute)
		n.lane().pace = newPace(deadline, underWay)
		now := time.Now().Add(time.Minute)
		n.breakers.hear(store.Whole, now.Add(-tc.heard))
		err := n.lane().unreached(store.Whole, now.Add(-tc.sent), now, late)
		if IsOverload(err) != tc.busy || n.breakers.tripped(store.Whole) == tc.busy {
			t.Errorf("%s: %v, tripped %v", tc.name, err, n.breakers.tripped(store.Whole))
		}
	}
}

// A node that sends requests and is woken too late is starved, until starvedLasts deadlines after
// that. A node that has nothing to send sleeps.
func TestWakes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const deadline = store.DefaultTimeout
		n, _ := busy(t)
		w := n.lanes.wakes
		if w.due.Load() != 0 || w.starved(time.Now(), deadline) {
			t.Error("nothing was sent")
		}
		if a, err := n.Decide(t.Context(), n.of("a")); err != nil || !a.Admitted() {
			t.Errorf("%+v, %v", a, err)
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
		w.late.Store(int64(time.Since(w.begun)))
		if !w.starved(time.Now().Add(starvedLasts*deadline-1), deadline) ||
			w.starved(time.Now().Add(starvedLasts*deadline), deadline) {
			t.Error("it was woken too late just now")
		}
	})
}
