// Package calendar divides time into the days, weeks, months or years that people of a time zone
// count by. It is pure: the zone's rules come in as a value.
//
// A period has a number, which follows from the date on which it begins and from nothing else:
//
//	day    days since 1 January of year 1, which has number 1
//	week   weeks since then; see Calendar.Weekday
//	month  12 x year + month, where January is month 0
//	year   the year in which it begins
//
// The number does not depend on the zone's rules. Those say when the period begins: at the first
// instant at which the zone's clocks show its first date, or a later one. So:
//
//   - Periods follow each other without a gap and never overlap.
//   - A day has 23, 24 or 25 hours, and others where clocks were set by something else than an hour.
//   - Where clocks skip midnight, the day begins when they have skipped it.
//   - Where clocks are set back over midnight, the repeated time belongs to the day that had begun.
//   - Where clocks skipped a whole day (Pacific/Apia, 30 December 2011), its period is empty: it
//     begins and ends at one instant.
//
// Two parties with different rules for a zone agree on the numbers, and disagree on the instants,
// as if their clocks differed.
package calendar

import (
	"time"

	"github.com/quotad/quotad/quantity"
)

// Unit is a kind of period, by its word in the limits document.
type Unit string

// The units.
const (
	Day   Unit = "day"
	Week  Unit = "week"
	Month Unit = "month"
	Year  Unit = "year"
)

// Units lists the units, the shortest first.
var Units = []Unit{Day, Week, Month, Year}

// Calendar divides time into periods. Two calendars are equal if they divide time alike and have
// the same Zone. Read all fields, and do not change them.
type Calendar struct {
	Unit Unit
	Zone *time.Location
	// Weekday is the first day of a Week, else 0.
	Weekday time.Weekday
	// Month is the month in which a Year begins, else 0.
	Month time.Month
	// Day is the day of the month on which a Month or Year begins, 1 to 31, else 0. A month that is
	// too short for it begins its period on its last day.
	Day int
}

// bounds has for each unit the first and the last period that is computed: those of the years 1 to
// 9999. Periods before and after begin when the first and the last of them do.
var bounds = map[Unit][2]quantity.Cell{
	Day: {1, 3_652_058}, Week: {1, 521_721}, Month: {12, 12*9999 + 10}, Year: {1, 9998},
}

// Opens returns when a period begins.
func (c Calendar) Opens(period quantity.Cell) quantity.StoreTime {
	return c.begin(c.clamp(period))
}

// At returns the number of the period that holds a store time.
func (c Calendar) At(t quantity.StoreTime) quantity.Cell {
	shown := time.UnixMicro(int64(t)).In(c.Zone)
	period := c.clamp(c.of(shown.Date()))
	// Clocks that were set back may show a date of the period before, once more.
	for c.begin(period+1) <= t && c.clamp(period+1) == period+1 {
		period++
	}
	return period
}

// Date returns the first date of a period, as clocks in the zone show it or would, had they not
// skipped it.
func (c Calendar) Date(period quantity.Cell) (year int, month time.Month, day int) {
	p := int(c.clamp(period))
	switch c.Unit {
	case Day:
		return dateOf(p)
	case Week:
		return dateOf(7*p + int(c.Weekday)) // day 1, 1 January of year 1, is a Monday
	case Month:
		return clampDay(p/12, time.Month(p%12+1), c.Day)
	}
	return clampDay(p, c.Month, c.Day)
}

// of returns the number of the period that holds a date.
func (c Calendar) of(year int, month time.Month, day int) quantity.Cell {
	period := 0
	switch c.Unit {
	case Day:
		return quantity.Cell(dayNumber(year, month, day))
	case Week:
		return quantity.Cell(floorDiv(dayNumber(year, month, day)-int(c.Weekday), 7))
	case Month:
		period = 12*year + int(month) - 1
	default:
		period = year
	}
	if y, m, d := c.Date(quantity.Cell(period)); dayNumber(y, m, d) > dayNumber(year, month, day) {
		period--
	}
	return quantity.Cell(period)
}

func (c Calendar) clamp(period quantity.Cell) quantity.Cell {
	of := bounds[c.Unit]
	return min(max(period, of[0]), of[1])
}

// begin returns the first instant at which clocks in the zone show a period's first date or a later
// one. Around a midnight they are set at most once; a test says so of all zones. (ZoneBounds is of
// no use: on the last day of a leap year it names an end that is over.)
func (c Calendar) begin(period quantity.Cell) quantity.StoreTime {
	year, month, day := c.Date(period)
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()
	from, to := midnight-maxOffset, midnight+maxOffset
	before, after := c.offset(from), c.offset(to)
	begins := midnight - before
	if before != after {
		for to-from > 1 {
			if middle := from + (to-from)/2; c.offset(middle) == before {
				from = middle
			} else {
				to = middle
			}
		}
		if begins >= to { // clocks were set before they would have shown the date
			begins = max(midnight-after, to)
		}
	}
	return quantity.StoreTime(begins * 1_000_000)
}

// offset returns how many seconds clocks in the zone are ahead of UTC.
func (c Calendar) offset(at int64) int64 {
	_, offset := time.Unix(at, 0).In(c.Zone).Zone()
	return int64(offset)
}

// maxOffset is more than any zone is ahead of UTC or behind it, in seconds.
const maxOffset = 16 * 3600

// dayNumber returns the number of a date, as Day has it.
func dayNumber(year int, month time.Month, day int) int {
	seconds := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()
	return int(seconds/86400) + dayOfEpoch
}

// dateOf returns the date with a number.
func dateOf(number int) (int, time.Month, int) {
	return time.Unix(int64(number-dayOfEpoch)*86400, 0).UTC().Date()
}

// dayOfEpoch is the number of 1 January 1970.
const dayOfEpoch = 719_163

// clampDay returns a day of a month, or the month's last if it has no such day.
func clampDay(year int, month time.Month, day int) (int, time.Month, int) {
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return year, month, min(day, last)
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
