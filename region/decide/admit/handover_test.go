package admit

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
)

// The caller is told that the node has done its part before the store has answered.
func TestHandover(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, s := busyNode(t)
		s.Stop(true)
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
			t.Errorf("not busy: %+v", n.queue.Load())
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
