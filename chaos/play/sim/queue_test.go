//go:build !race

package sim

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestAgendaKeepsOrder: occurrences happen in the order of their times, and those of the same time
// in the order in which they were put.
func TestAgendaKeepsOrder(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		type event struct {
			at int64
			n  int
		}
		var a agenda
		var left, got []event
		now := int64(0)
		for n := range rapid.IntRange(1, 60).Draw(t, "occurrences") {
			e := event{now + rapid.Int64Range(0, 9).Draw(t, "in"), n}
			left = append(left, e)
			a.put(e.at, func() { got = append(got, e) })
			if rapid.Bool().Draw(t, "take one") {
				slices.SortStableFunc(left, func(a, b event) int { return cmp.Compare(a.at, b.at) })
				o, ok := a.next(left[0].at)
				if !ok {
					t.Fatal("nothing is there")
				}
				now = o.at
				o.do()
				if got[len(got)-1] != left[0] {
					t.Fatalf("%v happens, and %v is next", got[len(got)-1], left[0])
				}
				left = left[1:]
			}
		}
		if _, ok := a.next(now - 1); ok {
			t.Fatal("something happens before its time")
		}
	})
}
