package oracle

import (
	"fmt"
	"time"
)

// Calendar says that a limit counts by the days, weeks, months or years of a time zone. A cell is
// numbered by the date on which it begins: the days since 1 January of year 1, the weeks since
// then, 12 x year + month (January is 0), or the year.
type Calendar struct {
	Unit string // day, week, month or year
	Zone *time.Location
	// Weekday is the first day of a week.
	Weekday time.Weekday
	// Month and Day are where a year begins, Day where a month does. A month that is too short for
	// Day begins on its last day.
	Month time.Month
	Day   int
}

// validate returns an error that says what is wrong with the calendar, or nil.
func (c *Calendar) validate() error {
	switch {
	case c.Zone == nil:
		return fmt.Errorf("oracle: a %s without a time zone cannot be judged: give its zone", c.Unit)
	case c.Unit == "month" || c.Unit == "year":
		if c.Day < 1 || c.Day > 31 {
			return fmt.Errorf("oracle: a %s cannot begin on day %d: give 1 to 31", c.Unit, c.Day)
		}
	case c.Unit != "day" && c.Unit != "week":
		return fmt.Errorf("oracle: there is no calendar %q: it judges day, week, month, year", c.Unit)
	}
	return nil
}

// longestRepeat is more than clocks are ever set back, and repeatStep the shortest time after
// midnight at which they are set back over it that cellOf sees.
const longestRepeat, repeatStep = 3 * time.Hour, 15 * time.Minute

// cellOf returns the number of the cell that contains a store time (µs). It reads the dates that
// clocks in the zone show. Clocks that are set back over midnight show a date once more: the cell
// that had begun goes on.
func (c *Calendar) cellOf(at int64) int64 {
	now := time.UnixMicro(at)
	latest := c.cellOn(now)
	for back := repeatStep; back <= longestRepeat; back += repeatStep {
		latest = max(latest, c.cellOn(now.Add(-back)))
	}
	return latest
}

// cellOn returns the number of the cell that has the date that clocks in the zone show.
func (c *Calendar) cellOn(at time.Time) int64 {
	year, month, day := at.In(c.Zone).Date()
	date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	switch c.Unit {
	case "day", "week":
		days := int64(date.Sub(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)).Hours())/24 + 2000*365 + 485 + 1
		if c.Unit == "day" {
			return days
		}
		return floorDiv(days-int64(c.Weekday), 7)
	case "month":
		cell := 12*int64(year) + int64(month) - 1
		if day < lastDay(year, month, c.Day) {
			cell--
		}
		return cell
	}
	if date.Before(time.Date(year, c.Month, lastDay(year, c.Month, c.Day), 0, 0, 0, 0, time.UTC)) {
		year--
	}
	return int64(year)
}

// lastDay returns a day of a month, or the month's last day if that is earlier.
func lastDay(year int, month time.Month, day int) int {
	return min(day, time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day())
}
