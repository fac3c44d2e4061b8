package queue

import (
	"strconv"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
)

// A round trip with little work is made alone: others are held back meanwhile, but not for ever.
func TestHeldBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := idle(t, minute)
		b := n.lane()
		for i := range 9 {
			if err := b.enqueue(t.Context(), n.of(strconv.Itoa(i)).Waits(time.Now(), time.Minute)); err != nil {
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

// TestBatchesAreDecidedAgain: the store seemed slow under an overload, so slow that a batch would
// find no time, and it is not any more. Batches alone, and silence alone, correct that.
func TestBatchesAreDecidedAgain(t *testing.T) {
	slow := func(t *testing.T, script time.Duration) node {
		n, _ := busy(t)
		p := &n.lane().pace
		p.took, p.work, p.fades = float64(script), scriptWork, time.Now().Add(fadeEvery)
		return n
	}
	batch := func(t *testing.T, n node) (decided int) {
		all := make([]Ask, 100)
		for i := range all {
			all[i] = n.of(strconv.Itoa(i)).Waits(time.Now(), 45*time.Millisecond)
		}
		said, errs := n.DecideAll(t.Context(), all)
		for i, err := range errs {
			if err == nil && said[i].Admitted() {
				decided++
			} else if !IsOverload(err) {
				t.Errorf("%+v, %v", said[i], err)
			}
		}
		return decided
	}
	bubble.Test(t, func(t *testing.T) {
		n, begun := slow(t, time.Second), time.Now()
		if batch(t, n) == 100 {
			t.Error("the estimate is not that of a slow store, which shows nothing")
		}
		for batch(t, n) < 100 {
			if time.Since(begun) > 2*time.Second {
				t.Fatalf("batches are not decided again: %+v", n.Load())
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	bubble.Test(t, func(t *testing.T) {
		n := slow(t, 31*time.Millisecond)
		time.Sleep(8 * time.Second)
		if script := n.Load().Script; script > time.Millisecond {
			t.Errorf("after 8 s of silence a script is taken to take %v", script)
		}
		if got := batch(t, n); got < 90 {
			t.Errorf("%d of 100 decided after 8 s of silence", got)
		}
	})
}
