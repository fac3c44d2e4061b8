package rights

import (
	"sync"
	"testing"
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
