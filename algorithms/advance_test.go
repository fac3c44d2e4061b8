//go:build !race

package algorithms_test

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/calendar"
)

// TestRowsOfTheNextWindowComeInTheLastMinute of the one before: what was promised before that ends
// with the window.
func TestRowsOfTheNextWindowComeInTheLastMinute(t *testing.T) {
	const day = 24 * 3600 * 1_000_000
	lender, borrower := newCalendarStore("a", 0, calendar.Calendar{Unit: calendar.Day, Zone: time.UTC}, 100), newCalendarStore("b", 0, calendar.Calendar{Unit: calendar.Day, Zone: time.UTC}, 100)
	first := lender.terms.CellAt(0)
	for _, c := range []struct {
		before int64
		want   algorithms.Status
	}{{day, algorithms.StatusFinished}, {algorithms.Advance + 1, algorithms.StatusFinished}, {algorithms.Advance, algorithms.StatusOK}, {1, algorithms.StatusOK}} {
		at := lender.terms.Opens(first + 1).Add(-c.before)
		given, credited := lender.lend(borrower, at, first+1, 10, false)
		if given.Status != c.want || c.want == algorithms.StatusOK && credited.Status != c.want {
			t.Errorf("%d us before: lent %v, credited %v, want %v", c.before, given.Status, credited.Status, c.want)
		}
		next := lender.terms.Over(at) > lender.terms.Opens(first+1)
		if next != (c.want == algorithms.StatusOK) {
			t.Errorf("%d us before: over at %d", c.before, lender.terms.Over(at))
		}
	}
}
