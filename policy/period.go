package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotad/quotad/calendar"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/policy/zones"
	"github.com/quotad/quotad/quantity"
)

// Period names the windows of a limit that counts by the calendar. It is empty for windows of one
// length. Its text is one of
//
//	day Europe/Berlin
//	week monday Europe/Berlin
//	month 15 Europe/Berlin
//	year 04-06 Europe/Berlin
//
// with the first day of the week, of the month (1 to 31; a shorter month begins on its last day) or
// of the year, and the time zone. Two periods are alike if their texts are.
type Period string

// usualLengths are how long periods are for whatever needs no exact length: the longest, but for
// changes of the clocks.
var usualLengths = map[calendar.Unit]time.Duration{
	calendar.Day: 24 * time.Hour, calendar.Week: 7 * 24 * time.Hour,
	calendar.Month: 31 * 24 * time.Hour, calendar.Year: 366 * 24 * time.Hour,
}

// shortestLengths are the lengths that periods are at least, but where a place changed its zone.
var shortestLengths = map[calendar.Unit]time.Duration{
	calendar.Day: 23 * time.Hour, calendar.Week: 7*24*time.Hour - time.Hour,
	calendar.Month: 28*24*time.Hour - time.Hour, calendar.Year: 365*24*time.Hour - time.Hour,
}

var weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday",
	"saturday"}

// defaultStarts are the first days where a document gives none.
var defaultStarts = map[calendar.Unit]string{
	calendar.Week: "monday", calendar.Month: "1", calendar.Year: "01-01",
}

// periodOf returns the text of a period.
func periodOf(unit calendar.Unit, starts, zone string) Period {
	if unit == calendar.Day {
		return Period(string(unit) + " " + zone)
	}
	return Period(string(unit) + " " + starts + " " + zone)
}

// parts returns what the text of a period says, and whether it is such a text. The zone need not
// exist.
func (p Period) parts() (unit calendar.Unit, starts, zone string, ok bool) {
	words := strings.Split(string(p), " ")
	unit, zone = calendar.Unit(words[0]), words[len(words)-1]
	if unit == calendar.Day {
		return unit, "", zone, len(words) == 2 && isZoneName(zone)
	}
	if len(words) != 3 || !slices.Contains(calendar.Units, unit) || !isZoneName(zone) {
		return "", "", "", false
	}
	return unit, words[1], zone, setStarts(&calendar.Calendar{Unit: unit}, words[1])
}

// isZoneName reports whether a text has the form of a time zone's name.
func isZoneName(name string) bool {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_+-/", r)) {
			return false
		}
	}
	return name != "" && len(name) <= zones.MaxName
}

// setStarts sets the first day of a calendar's periods, and reports whether the text is one. There is
// one text for each.
func setStarts(c *calendar.Calendar, starts string) bool {
	switch c.Unit {
	case calendar.Week:
		day := slices.Index(weekdays, starts)
		c.Weekday = time.Weekday(max(day, 0))
		return day >= 0
	case calendar.Month:
		day, err := strconv.Atoi(starts)
		c.Day = day
		return err == nil && day >= 1 && day <= 31 && strconv.Itoa(day) == starts
	case calendar.Year:
		// 2000 has a 29 February
		date, err := time.Parse(time.DateOnly, "2000-"+starts)
		c.Month, c.Day = date.Month(), date.Day()
		return err == nil
	}
	return starts == ""
}

// calendar returns what the period stands for.
func (p Period) calendar() (calendar.Calendar, error) {
	unit, starts, name, ok := p.parts()
	if !ok {
		return calendar.Calendar{}, fmt.Errorf("period %.60q is none", string(p))
	}
	zone, err := zones.Load(name)
	c := calendar.Calendar{Unit: unit, Zone: zone}
	setStarts(&c, starts)
	return c, err
}

// Unit returns what kind of period it is, or an empty text.
func (p Period) Unit() calendar.Unit {
	unit, _, _, _ := p.parts()
	return unit
}

// Words returns the period as a person would name it, such as "month from day 15, Europe/Berlin".
func (p Period) Words() string {
	unit, starts, zone, _ := p.parts()
	from := ""
	switch {
	case unit == calendar.Week:
		from = " from " + starts
	case starts == "31":
		from = " from its last day"
	case unit == calendar.Month && starts != defaultStarts[unit]:
		from = " from day " + starts
	case unit == calendar.Year && starts != defaultStarts[unit]:
		from = " from " + starts
	}
	return string(unit) + from + ", " + zone
}

// ShortestWindow returns how long the windows of a limit are at least.
func (l *Limit) ShortestWindow() time.Duration {
	if unit, _, _, ok := l.Period.parts(); ok {
		return shortestLengths[unit]
	}
	return l.Window
}

// Calendar returns what divides time into the windows of a limit that counts by the calendar.
func (l *Limit) Calendar() (c calendar.Calendar, ok bool) {
	if l.Period == "" {
		return c, false
	}
	c, err := l.Period.calendar()
	return c, err == nil // Parse has loaded the zone
}

// readWindowOrPeriod reads the window of an entry, and what belongs to it.
func readWindowOrPeriod(o strictyaml.Object, l *Limit) {
	f, ok := o.Required("window", "write a duration such as 1m, or day, week, month or year")
	if !ok {
		return
	}
	text, _ := f.IsText()
	unit := calendar.Unit(text)
	if !slices.Contains(calendar.Units, unit) {
		for _, name := range []string{"timezone", "starts"} {
			if f, given := o.Field(name); given {
				f.Fail(name+" belongs to windows of the calendar",
					"write window: day, week, month or year, or remove "+name)
			}
		}
		l.Window = readWindow(f)
		return
	}
	if l.Algorithm != "" && l.Algorithm != FixedWindow {
		f.Fail(fmt.Sprintf("a %s has no windows of the calendar, only %s has", l.Algorithm,
			FixedWindow), fmt.Sprintf("write algorithm: %s, or a duration such as %s", FixedWindow,
			FormatWindow(usualLengths[unit])))
		return
	}
	l.Window = usualLengths[unit]
	zone, starts := "UTC", defaultStarts[unit]
	zone = strictyaml.Optional(o, "timezone", zone, readZone)
	if f, given := o.Field("starts"); given {
		starts = readStarts(f, unit)
	}
	l.Period = periodOf(unit, starts, zone)
}

// readZone reads the name of a time zone; it returns UTC if it refuses the value.
func readZone(f strictyaml.Value) string {
	const mend = "write a zone of the IANA database, such as Europe/Berlin, or UTC"
	name, ok := f.Text(mend)
	if !ok {
		return "UTC"
	}
	if _, err := zones.Load(name); err != nil {
		f.Fail(err.Error(), mendZone(name, mend))
		return "UTC"
	}
	return name
}

// mendZone says how to mend a name that no zone has.
func mendZone(name, otherwise string) string {
	all := zones.Names()
	i := slices.IndexFunc(all, func(known string) bool { return strings.EqualFold(known, name) })
	if i >= 0 {
		return "write " + all[i]
	}
	return otherwise
}

// readStarts reads the first day of a unit's periods; it returns the default if it refuses the
// value.
func readStarts(f strictyaml.Value, unit calendar.Unit) string {
	switch unit {
	case calendar.Day:
		f.Fail("a day starts at midnight", "remove starts")
		return ""
	case calendar.Month:
		if day := f.Integer(1, 31); day > 0 {
			return strconv.FormatInt(day, 10)
		}
		return defaultStarts[unit]
	case calendar.Week:
		return strictyaml.OneOf(f, weekdays...)
	}
	const mend = "write the month and the day on which the year starts, such as 04-06"
	text, ok := f.Text(mend)
	if !ok || setStarts(&calendar.Calendar{Unit: unit}, text) {
		return text
	}
	f.Fail(strictyaml.InWords(text)+" is no day of a year", mend)
	return defaultStarts[unit]
}

// lengthsOfPeriods are the lengths that people write who mean a period, and the period.
var lengthsOfPeriods = map[time.Duration]calendar.Unit{
	7 * 24 * time.Hour: calendar.Week, 28 * 24 * time.Hour: calendar.Month,
	30 * 24 * time.Hour: calendar.Month, 31 * 24 * time.Hour: calendar.Month,
	365 * 24 * time.Hour: calendar.Year, 366 * 24 * time.Hour: calendar.Year,
}

// meantPeriod warns of windows that have about the length of a period, but begin at other times.
func meantPeriod(s source) []Warning {
	unit, found := lengthsOfPeriods[s.Window]
	if !found || s.Period != "" || s.Algorithm != FixedWindow {
		return nil
	}
	return s.warning("window",
		fmt.Sprintf("windows of %s begin on days that no calendar shows: they are counted from 1 January 1970, 00:00 UTC",
			FormatWindow(s.Window)),
		fmt.Sprintf("if a calendar's %s is meant, write window: %s, and its timezone", unit, unit))
}

// WindowAt returns how long the window is that a time is in.
func (l *Limit) WindowAt(at time.Time) time.Duration {
	c, ok := l.Calendar()
	if !ok {
		return l.Window
	}
	cell := c.At(quantity.StoreTime(at.UnixMicro()))
	return time.Duration(c.Opens(cell+1).Sub(c.Opens(cell))) * time.Microsecond
}
