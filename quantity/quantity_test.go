package quantity

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// A time lies in the cell that opens last at or before it, and times and spans add up.
func TestTimesAndCells(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		length := rapid.Int64Range(1, 1<<40).Draw(t, "length")
		at := StoreTime(rapid.Int64Range(0, 1<<52).Draw(t, "at"))
		cell := Cell(int64(at) / length)
		if opens, next := cell.OpensAt(length), (cell + 1).OpensAt(length); opens > at ||
			next <= at {
			t.Fatalf("time %d is in cell %d, which opens at %d, and the next at %d", at, cell,
				opens, next)
		}
		span := rapid.Int64Range(-1<<40, 1<<40).Draw(t, "span")
		if got := at.Add(span).Sub(at); got != span {
			t.Fatalf("%d microseconds later is %d microseconds later", span, got)
		}
		here := NodeTime(at)
		if got := here.Add(span).Sub(here); got != span {
			t.Fatalf("%d microseconds later is %d microseconds later by a node's clock", span, got)
		}
	})
}
