package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/calendar"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/zones"
)

// calendarDocument has one limit with the given fields.
func calendarDocument(fields string) string {
	return "version: 1\nregions: {eu: {weight: 1}}\nlimits:\n" +
		"- {name: a, domain: api, key: [k], algorithm: fixed_window, limit: 10, " + fields + "}\n"
}

func TestPeriods(t *testing.T) {
	berlin, err := zones.Load("Europe/Berlin")
	suite.Must(t, err)
	utc, err := zones.Load("UTC")
	suite.Must(t, err)
	for _, c := range []struct {
		fields   string
		period   Period
		words    string
		calendar calendar.Calendar
	}{
		{"window: day", "day UTC", "day, UTC", calendar.Calendar{Unit: calendar.Day, Zone: utc}},
		{"window: week, timezone: Europe/Berlin", "week monday Europe/Berlin",
			"week from monday, Europe/Berlin",
			calendar.Calendar{Unit: calendar.Week, Zone: berlin, Weekday: time.Monday}},
		{"starts: sunday, window: week", "week sunday UTC", "week from sunday, UTC",
			calendar.Calendar{Unit: calendar.Week, Zone: utc}},
		{"window: month, timezone: Europe/Berlin", "month 1 Europe/Berlin", "month, Europe/Berlin",
			calendar.Calendar{Unit: calendar.Month, Zone: berlin, Day: 1}},
		{"window: month, starts: 15", "month 15 UTC", "month from day 15, UTC",
			calendar.Calendar{Unit: calendar.Month, Zone: utc, Day: 15}},
		{"window: month, starts: 31", "month 31 UTC", "month from its last day, UTC",
			calendar.Calendar{Unit: calendar.Month, Zone: utc, Day: 31}},
		{"window: year", "year 01-01 UTC", "year, UTC",
			calendar.Calendar{Unit: calendar.Year, Zone: utc, Month: time.January, Day: 1}},
		{"window: year, starts: 02-29", "year 02-29 UTC", "year from 02-29, UTC",
			calendar.Calendar{Unit: calendar.Year, Zone: utc, Month: time.February, Day: 29}},
	} {
		doc := mustParse(t, calendarDocument(c.fields))
		l := &doc.Limits[0]
		got, ok := l.Calendar()
		if l.Period != c.period || !ok || got != c.calendar || l.Period.Words() != c.words {
			t.Errorf("%s: %q, %q, %+v", c.fields, l.Period, l.Period.Words(), got)
		}
		id := l.Bucket(map[string]string{"k": "v"})
		if !strings.Contains(string(id), fmt.Sprintf(":%s,", c.period)) {
			t.Errorf("%s: bucket %q", c.fields, id)
		}
		ref, err := ParseBucketID(id)
		if found, known := doc.Compile().Entry(ref); err != nil || !known || found != l {
			t.Errorf("%s: bucket %q is of %+v, %v", c.fields, id, found, err)
		}
	}
}

// Documents that differ in a period alone have different epochs and buckets. What a document leaves
// out is as if it was written.
func TestPeriodsHaveTheirOwnEpochsAndBuckets(t *testing.T) {
	same := []string{"window: month", "window: month, timezone: UTC, starts: 1"}
	other := []string{"window: day", "window: week", "window: week, starts: sunday", same[0],
		"window: month, starts: 2", "window: month, timezone: Europe/Berlin",
		"window: month, timezone: Europe/Copenhagen", "window: year", "window: 31d"}
	epochs, buckets := map[Epoch]string{}, map[BucketID]string{}
	for _, fields := range other {
		doc := mustParse(t, calendarDocument(fields))
		id := doc.Limits[0].Bucket(map[string]string{"k": "v"})
		if before, known := epochs[doc.Epoch()]; known {
			t.Errorf("%s and %s have one epoch", fields, before)
		}
		if before, known := buckets[id]; known {
			t.Errorf("%s and %s have one bucket", fields, before)
		}
		epochs[doc.Epoch()], buckets[id] = fields, fields
	}
	if one, two := mustParse(t, calendarDocument(same[0])),
		mustParse(t, calendarDocument(same[1])); one.Epoch() != two.Epoch() {
		t.Errorf("epochs %s and %s of one document", one.Epoch(), two.Epoch())
	}
}

// IDs whose period no document can have are refused.
func TestIDsWithoutAPeriod(t *testing.T) {
	for _, window := range []string{"", "month", "month 1", "month 01 UTC", "month 0 UTC", "month 32 UTC",
		"month 1 ", "month 1 UTC ", "Month 1 UTC", "day 1 UTC", "week UTC", "week Monday UTC",
		"year 4-6 UTC", "year 02-30 UTC", "month 1 Not\nOne", "decade 1 UTC",
		"day " + strings.Repeat("z", zones.MaxName+1)} {
		id := BucketRef{Domain: "api", Name: "a", Algorithm: FixedWindow, Period: Period(window),
			Key: []KeyValue{{"k", "v"}}}.ID()
		if ref, err := ParseBucketID(id); err == nil {
			t.Errorf("%q was read as %+v", id, ref)
		}
	}
	id := BucketRef{Domain: "api", Name: "a", Algorithm: TokenBucket, Period: "day UTC",
		Key: []KeyValue{{"k", "v"}}}.ID()
	if ref, err := ParseBucketID(id); err == nil {
		t.Errorf("%q was read as %+v", id, ref)
	}
}

// A document may name any zone of the database.
func TestEveryZone(t *testing.T) {
	longest := 0
	for _, name := range zones.Names() {
		l := mustParse(t, calendarDocument("window: month, timezone: "+name)).Limits[0]
		if _, ok := l.Calendar(); !ok {
			t.Errorf("no calendar of %s", name)
		}
		longest = max(longest, len(name))
	}
	if longest != zones.MaxName {
		t.Errorf("the longest name has %d bytes", longest)
	}
}

// A month is as long as it is.
func TestWindowAt(t *testing.T) {
	l := Limit{Window: 31 * 24 * time.Hour, Period: "month 1 UTC"}
	for month, days := range map[time.Month]int{time.November: 30, time.December: 31, time.February: 28} {
		at := time.Date(2026, month, 9, 0, 0, 0, 0, time.UTC)
		if got := l.WindowAt(at); got != time.Duration(days)*24*time.Hour {
			t.Errorf("%v has %v", month, got)
		}
	}
	l.Period = ""
	if got := l.WindowAt(time.Now()); got != l.Window {
		t.Errorf("a window of %v has %v", l.Window, got)
	}
}
