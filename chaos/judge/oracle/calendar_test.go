package oracle

import (
	"testing"
	"time"
)

// Calendars number cells by dates, in the judge as in the documentation.
func TestCalendarCells(t *testing.T) {
	east := time.FixedZone("east", 9*3600)
	at := time.Date(2026, 2, 28, 16, 0, 0, 0, time.UTC).UnixMicro() // in the east it is 1 March
	for _, c := range []struct {
		calendar Calendar
		want     int64
	}{
		{Calendar{Unit: "day", Zone: time.UTC}, 739_675},
		{Calendar{Unit: "day", Zone: east}, 739_676},
		{Calendar{Unit: "week", Zone: time.UTC, Weekday: time.Monday}, 105_667},
		{Calendar{Unit: "week", Zone: east}, 105_668}, // Sunday
		{Calendar{Unit: "month", Zone: time.UTC, Day: 1}, 12*2026 + 1},
		{Calendar{Unit: "month", Zone: time.UTC, Day: 31}, 12*2026 + 1}, // begins on the 28th
		{Calendar{Unit: "month", Zone: east, Day: 1}, 12*2026 + 2},
		{Calendar{Unit: "month", Zone: east, Day: 2}, 12*2026 + 1},
		{Calendar{Unit: "year", Zone: east, Month: time.March, Day: 1}, 2026},
		{Calendar{Unit: "year", Zone: time.UTC, Month: time.March, Day: 1}, 2025},
	} {
		l := Limit{Limit: 10, Window: time.Hour, Algorithm: "fixed_window", Calendar: &c.calendar}
		if err := l.Validate(); err != nil {
			t.Errorf("%+v: %v", c.calendar, err)
		}
		if got := l.CellOf(at); got != c.want {
			t.Errorf("%+v: cell %d, want %d", c.calendar, got, c.want)
		}
	}
}

func TestCalendarsThatCannotBeJudged(t *testing.T) {
	for _, l := range []Limit{
		{Algorithm: "fixed_window", Calendar: &Calendar{Unit: "day"}},
		{Algorithm: "fixed_window", Calendar: &Calendar{Unit: "decade", Zone: time.UTC}},
		{Algorithm: "fixed_window", Calendar: &Calendar{Unit: "month", Zone: time.UTC, Day: 32}},
		{Algorithm: "sliding_window_counter", Calendar: &Calendar{Unit: "day", Zone: time.UTC}},
	} {
		l.Limit, l.Window = 10, time.Hour
		if l.Validate() == nil {
			t.Errorf("%+v is valid", l)
		}
	}
}
