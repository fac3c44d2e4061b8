package rights

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

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
