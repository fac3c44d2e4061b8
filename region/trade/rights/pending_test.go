package rights

import (
	"sync"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// TestPendingReplies: each answer reaches the goroutine that waits under its number, and no other.
// A waiter that has left gets no answer and blocks nobody.
func TestPendingReplies(t *testing.T) {
	var d pendingReplies[string]
	first, one, leaveFirst := d.wait()
	second, other, leaveSecond := d.wait()
	if first == 0 || second == first {
		t.Fatalf("numbers %d and %d", first, second)
	}
	d.hand(second, "b")
	d.hand(second, "late")
	d.hand(0, "nobody's")
	d.hand(second+1, "nobody's yet")
	if got := <-other; got != "b" || len(one) > 0 || len(other) > 0 {
		t.Errorf("the second got %q; %d answers lie for the first, %d for the second", got,
			len(one), len(other))
	}
	leaveFirst()
	leaveFirst()
	d.hand(first, "a")
	leaveSecond()
	if len(one) > 0 || len(d.waiting) > 0 {
		t.Errorf("%d answers for who has left, %d wait", len(one), len(d.waiting))
	}
	if third, _, leave := d.wait(); third <= second {
		t.Errorf("number %d again", third)
	} else {
		leave()
	}
}

func TestPendingRepliesConcurrently(t *testing.T) {
	var d pendingReplies[uint64]
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				id, answer, leave := d.wait()
				go d.hand(id, id)
				if got := <-answer; got != id {
					t.Errorf("%d got the answer to %d", id, got)
				}
				leave()
			}
		})
	}
	all.Wait()
	if len(d.waiting) > 0 {
		t.Errorf("%d wait", len(d.waiting))
	}
}

func TestWaiters(t *testing.T) {
	var all waiters
	lacking := func(cost quantity.Units) *waiter {
		return &waiter{cost: cost, woken: make(chan bool, 1)}
	}
	a, b, other, huge := lacking(3), lacking(4), lacking(5), lacking(algorithms.MaxUnits)
	for _, step := range []struct {
		bucket string
		w      *waiter
		lacks  quantity.Units
	}{{"x", a, 3}, {"x", b, 7}, {"y", other, 5}, {"y", huge, algorithms.MaxUnits}} {
		all.add(step.bucket, step.w)
		if got := all.cost(step.bucket); got != step.lacks {
			t.Errorf("all that wait for %s lack %d, want %d", step.bucket, got, step.lacks)
		}
	}
	all.wake("x", true)
	all.wake("x", false) // they have been told already
	all.wake("nobody's", true)
	if !<-a.woken || !<-b.woken || len(other.woken) > 0 {
		t.Error("woken are not those of the bucket, as they were first told")
	}
	all.remove("x", a)
	all.wake("x", false)
	if len(a.woken) > 0 || <-b.woken {
		t.Error("woken is not the one that still waits")
	}
	for bucket, w := range map[string][]*waiter{"x": {b}, "y": {other, huge}} {
		for _, w := range w {
			all.remove(bucket, w)
		}
	}
	if len(all.all) > 0 {
		t.Errorf("lists are left of nobody: %v", all.all)
	}
}
