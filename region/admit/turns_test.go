package admit

import (
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/rules"
)

// TestTurnsFollowEachOther: 8 units in a second are one in 125 ms, and turns for one of them an eighth
// further apart. Nobody is told a time more than a window after its own. Who comes when all turns are
// over is told its own time.
func TestTurnsFollowEachOther(t *testing.T) {
	a := &rules.Applied{Hash: 7}
	a.Target.Terms = algorithms.Terms{Window: 1_000_000}
	var all turns
	next := func(at, own, cost int64, nodes int) int64 {
		return all.next(a, quantity.StoreTime(at), time.Duration(own)*time.Microsecond, quantity.Units(cost), 8, nodes).Microseconds()
	}
	for i, tt := range []struct {
		at, own, cost int64
		nodes         int
		want          int64
	}{
		{1_000_000, 5_000, 1, 1, 5_000},
		{1_000_000, 5_000, 1, 1, 145_625},
		{1_100_000, 30_000, 2, 1, 326_875}, // 1,145,625 and two units
		{1_100_000, 30_000, 1, 2, 608_125}, // of two nodes
		{1_100_000, 30_000, 8, 1, 1_030_000},
		{1_100_000, 30_000, 1, 1, 748_750}, // what is not told takes no place
		{9_000_000, 10_000, 1, 1, 10_000},
	} {
		if got := next(tt.at, tt.own, tt.cost, tt.nodes); got != tt.want {
			t.Errorf("%d: told %d us, want %d", i, got, tt.want)
		}
	}
	if got := all.next(a, 9_000_000, time.Hour, 1, 0, 1); got != time.Hour {
		t.Errorf("a bucket that is not refilled: %v", got)
	}
}

// TestTurnsOfManyCallers: no two callers have one turn, also if they are told at the same time.
func TestTurnsOfManyCallers(t *testing.T) {
	a := &rules.Applied{Hash: 7}
	a.Target.Terms = algorithms.Terms{Window: 1_000_000}
	var all turns
	var callers sync.WaitGroup
	told := make(chan time.Duration, 400)
	for range 4 {
		callers.Go(func() {
			for range 100 {
				told <- all.next(a, 1, time.Millisecond, 1, 1000, 1)
			}
		})
	}
	callers.Wait()
	close(told)
	seen := map[time.Duration]bool{}
	for after := range told {
		if seen[after] {
			t.Fatalf("two are told %v", after)
		}
		seen[after] = true
	}
}
