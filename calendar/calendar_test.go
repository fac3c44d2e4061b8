//go:build !race

package calendar_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/calendar"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/zones"
	"github.com/quotad/quotad/quantity"
)

// places are zones with all that happens to clocks: none, whole and half hours, changes at
// midnight, changes of sides of the date line, days that were skipped or had twice the same date.
var places = []string{"UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "America/New_York",
	"America/Sao_Paulo", "America/St_Johns", "America/Havana", "America/Asuncion",
	"America/Godthab", "Africa/Casablanca", "Africa/Cairo", "Asia/Beirut", "Asia/Gaza",
	"Asia/Tehran", "Asia/Kathmandu", "Asia/Amman", "Asia/Manila", "Australia/Lord_Howe",
	"Pacific/Apia", "Pacific/Kwajalein", "Pacific/Chatham", "Pacific/Kiritimati", "Antarctica/Troll"}

func zone(t testing.TB, name string) *time.Location {
	z, err := zones.Load(name)
	suite.Must(t, err)
	return z
}

// every calls f with calendars of all units, with usual and unusual first days.
func every(zone *time.Location, f func(calendar.Calendar)) {
	f(calendar.Calendar{Unit: calendar.Day, Zone: zone})
	for _, first := range []time.Weekday{time.Sunday, time.Monday, time.Saturday} {
		f(calendar.Calendar{Unit: calendar.Week, Zone: zone, Weekday: first})
	}
	for _, day := range []int{1, 15, 29, 30, 31} {
		f(calendar.Calendar{Unit: calendar.Month, Zone: zone, Day: day})
	}
	for _, first := range []struct {
		month time.Month
		day   int
	}{{time.January, 1}, {time.February, 29}, {time.April, 6}, {time.October, 31}} {
		f(calendar.Calendar{Unit: calendar.Year, Zone: zone, Month: first.month, Day: first.day})
	}
}

// nextDate returns the first date of the period after the one that begins on a date, counted as a
// person does with Go's own dates.
func nextDate(c calendar.Calendar, date time.Time) time.Time {
	next := time.Time{}
	switch c.Unit {
	case calendar.Day:
		return date.AddDate(0, 0, 1)
	case calendar.Week:
		return date.AddDate(0, 0, 7)
	case calendar.Month:
		next = time.Date(date.Year(), date.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	default:
		next = time.Date(date.Year()+1, c.Month, 1, 0, 0, 0, 0, time.UTC)
	}
	for next.Day() < c.Day && next.AddDate(0, 0, 1).Month() == next.Month() {
		next = next.AddDate(0, 0, 1)
	}
	return next
}

// In 100 years (70 under -short: later years are by the same rules) and all zones of the list, periods begin when Go's calendar says that the clocks
// there first show the date, and last until the next begins.
func TestPeriodsBeginWhenGosCalendarSaysSo(t *testing.T) {
	for _, name := range places {
		t.Run(name, func(t *testing.T) {
			every(zone(t, name), func(c calendar.Calendar) { checkCentury(t, c) })
		})
	}
}

func checkCentury(t *testing.T, c calendar.Calendar) {
	t.Helper()
	period := c.At(micro(time.Date(1970, 1, 5, 12, 0, 0, 0, time.UTC)))
	year, month, day := c.Date(period)
	for date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC); date.Year() < suite.Short(2041, 2071); period++ {
		if y, m, d := c.Date(period); !time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Equal(date) {
			t.Fatalf("%+v: period %d begins on %d-%d-%d, not on %s", c, period, y, m, d, date)
		}
		checkPeriod(t, c, period, date)
		date = nextDate(c, date)
	}
}

// checkPeriod checks when a period begins, and what is said of its first and last instants.
func checkPeriod(t *testing.T, c calendar.Calendar, period quantity.Cell, date time.Time) {
	t.Helper()
	opens, ends := c.Opens(period), c.Opens(period+1)
	if opens > ends {
		t.Fatalf("%+v: period %d begins at %d, after the next, at %d", c, period, opens, ends)
	}
	// By Go's clock, the date is shown now, and was not an instant before.
	if shown := shows(c.Zone, opens); shown.Before(date) {
		t.Fatalf("%+v: period %d of %s begins when clocks show %s", c, period, date, shown)
	}
	for _, before := range []int64{1, 60e6, 3600e6, 3 * 3600e6} {
		if shown := shows(c.Zone, opens.Add(-before)); !shown.Before(date) {
			t.Fatalf("%+v: period %d of %s has begun when clocks show %s", c, period, date, shown)
		}
	}
	// Where midnight is shown once, it is what time.Date says.
	midnight := time.Date(date.Year(), date.Month(), date.Day(), 0, 0, 0, 0, c.Zone)
	once := shows(c.Zone, micro(midnight)).Equal(date) &&
		!shows(c.Zone, micro(midnight).Add(-3600e6)).Equal(date) &&
		!shows(c.Zone, micro(midnight).Add(-1800e6)).Equal(date)
	if once && micro(midnight) != opens {
		t.Fatalf("%+v: period %d begins at %d, Go says %s", c, period, opens, midnight)
	}
	if opens == ends {
		return
	}
	for _, at := range []quantity.StoreTime{opens, opens.Add(90e6), opens.Add(1800e6),
		opens.Add(5400e6), opens + (ends-opens)/2, ends - 1} {
		if got := c.At(at); got != period {
			t.Fatalf("%+v: %d is in period %d, not %d", c, at, got, period)
		}
	}
}

func micro(t time.Time) quantity.StoreTime { return quantity.StoreTime(t.UnixMicro()) }

// shows returns what clocks in a zone show, as if it were in UTC.
func shows(zone *time.Location, at quantity.StoreTime) time.Time {
	s := time.UnixMicro(int64(at)).In(zone)
	return time.Date(s.Year(), s.Month(), s.Day(), s.Hour(), s.Minute(), s.Second(),
		s.Nanosecond(), time.UTC)
}

// Lengths of days and beginnings that people of the place remember.
func TestDaysThatWereUnusual(t *testing.T) {
	for _, c := range []struct {
		zone, date string
		hours      float64
		begins     string // in UTC
	}{
		{"Europe/Berlin", "2026-03-29", 23, "2026-03-28T23:00:00Z"},
		{"Europe/Berlin", "2026-10-25", 25, "2026-10-24T22:00:00Z"},
		// clocks skipped midnight: the day began at 01:00
		{"America/Sao_Paulo", "2018-11-04", 23, "2018-11-04T03:00:00Z"},
		// clocks were set back at midnight: the day before had 25 hours
		{"America/Sao_Paulo", "2018-02-17", 25, "2018-02-17T02:00:00Z"},
		{"Asia/Beirut", "2026-03-29", 23, "2026-03-28T22:00:00Z"},
		// midnight came twice: what was repeated belongs to the day that had begun
		{"Asia/Amman", "2021-10-29", 25, "2021-10-28T21:00:00Z"},
		{"America/St_Johns", "2010-11-07", 25, "2010-11-07T02:30:00Z"},
		{"Australia/Lord_Howe", "2026-04-05", 24.5, "2026-04-04T13:00:00Z"},
		{"Australia/Lord_Howe", "2026-10-04", 23.5, "2026-10-03T13:30:00Z"},
		// the day that was skipped
		{"Pacific/Apia", "2011-12-29", 24, "2011-12-29T10:00:00Z"},
		{"Pacific/Apia", "2011-12-30", 0, "2011-12-30T10:00:00Z"},
		{"Pacific/Apia", "2011-12-31", 24, "2011-12-30T10:00:00Z"},
		{"Antarctica/Troll", "2026-03-29", 22, "2026-03-29T00:00:00Z"},
	} {
		day := calendar.Calendar{Unit: calendar.Day, Zone: zone(t, c.zone)}
		date, err := time.Parse(time.DateOnly, c.date)
		suite.Must(t, err)
		number := calendar.Calendar{Unit: calendar.Day, Zone: time.UTC}.At(micro(date))
		opens, ends := day.Opens(number), day.Opens(number+1)
		if got := time.UnixMicro(int64(opens)).UTC().Format(time.RFC3339); got != c.begins {
			t.Errorf("%s %s begins at %s, not %s", c.zone, c.date, got, c.begins)
		}
		if got := time.Duration(ends.Sub(opens)) * time.Microsecond; got.Hours() != c.hours {
			t.Errorf("%s %s has %v, not %v hours", c.zone, c.date, got, c.hours)
		}
	}
}

// From 1970 to 2070 no zone sets its clocks twice around one midnight, nor is any further from UTC
// than the package takes for granted.
func TestZonesAreAsTakenForGranted(t *testing.T) {
	const near, step = 2 * 16 * 3600, 12 * 3600
	for _, name := range zones.Names() {
		z := zone(t, name)
		var last, before int64
		for at := int64(0); at < 100*365*86400; at += step {
			_, offset := time.Unix(at, 0).In(z).Zone()
			if offset >= 16*3600 || offset <= -16*3600 {
				t.Fatalf("%s is %d s ahead of UTC", name, offset)
			}
			if at > 0 && int64(offset) != before {
				if last > 0 && at-last <= near+step {
					t.Errorf("%s sets its clocks twice before %s", name, time.Unix(at, 0).UTC())
				}
				last = at
			}
			before = int64(offset)
		}
	}
}

// Numbers are those that the package promises.
func TestNumbers(t *testing.T) {
	at := micro(time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)) // a Saturday
	for _, c := range []struct {
		calendar calendar.Calendar
		want     quantity.Cell
	}{
		{calendar.Calendar{Unit: calendar.Day}, 739_675},
		{calendar.Calendar{Unit: calendar.Week, Weekday: time.Monday}, 105_667},
		{calendar.Calendar{Unit: calendar.Week, Weekday: time.Saturday}, 105_667},
		{calendar.Calendar{Unit: calendar.Month, Day: 1}, 12*2026 + 1},
		{calendar.Calendar{Unit: calendar.Month, Day: 31}, 12*2026 + 1}, // begins on the 28th
		{calendar.Calendar{Unit: calendar.Month, Day: 15}, 12*2026 + 1},
		{calendar.Calendar{Unit: calendar.Year, Month: time.January, Day: 1}, 2026},
		{calendar.Calendar{Unit: calendar.Year, Month: time.February, Day: 29}, 2026},
		{calendar.Calendar{Unit: calendar.Year, Month: time.April, Day: 6}, 2025},
	} {
		c.calendar.Zone = time.UTC
		if got := c.calendar.At(at); got != c.want {
			t.Errorf("%+v: period %d, not %d", c.calendar, got, c.want)
		}
	}
}

// Whatever the number or the time, there is an answer, and later periods never begin earlier.
func TestAnyNumberAndAnyTime(t *testing.T) {
	all := []calendar.Calendar{}
	for _, name := range places {
		every(zone(t, name), func(c calendar.Calendar) { all = append(all, c) })
	}
	suite.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(all).Draw(t, "calendar")
		a, b := quantity.Cell(rapid.Int64().Draw(t, "a")), quantity.Cell(rapid.Int64().Draw(t, "b"))
		if c.Opens(min(a, b)) > c.Opens(max(a, b)) {
			t.Fatalf("%+v: %d begins after %d", c, min(a, b), max(a, b))
		}
		at := quantity.StoreTime(rapid.Int64().Draw(t, "at"))
		if usual := rapid.Bool().Draw(t, "usual"); usual {
			at = quantity.StoreTime(rapid.Int64Range(0, 1<<52).Draw(t, "usual at"))
			if p := c.At(at); c.Opens(p) > at || c.Opens(p+1) <= at {
				t.Fatalf("%+v: %d is in period %d, from %d to %d", c, at, p, c.Opens(p),
					c.Opens(p+1))
			}
		}
		c.At(at)
	})
}

func BenchmarkAt(b *testing.B) {
	c := calendar.Calendar{Unit: calendar.Month, Zone: zone(b, "Europe/Berlin"), Day: 15}
	at := micro(time.Date(2026, 7, 3, 12, 0, 0, 0, time.UTC))
	for b.Loop() {
		c.At(at)
	}
}
