package sim

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// calendars changes a plan so that its fixed windows count by the calendar of some time zone, and
// the run begins shortly before one of them ends: at the end of a month or year, or of a day on
// which the clocks of the zone are set. It has a random stream of its own, so that seeds keep their
// meaning without it.
func calendars(p *Plan) {
	random := p.random(forCalendar, 0)
	moment := moments[random.IntN(len(moments))]
	lines := strings.Split(p.Document, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "fixed_window") {
			continue
		}
		window := moment.windows[random.IntN(len(moment.windows))]
		// Loads were drawn for short windows.
		line = limitUnits.ReplaceAllString(line,
			fmt.Sprintf(", limit: %d,", []int64{10, 300, 3000}[random.IntN(3)]))
		lines[i] = windowOfLine.ReplaceAllString(line,
			fmt.Sprintf("window: %s, timezone: %s", window, moment.zone))
	}
	p.Document = strings.Join(lines, "\n")
	at, err := time.Parse(time.RFC3339, moment.ends)
	if err != nil {
		panic("the end of a period: " + err.Error())
	}
	p.Began = at.UnixMicro() - p.Into - p.Heal/10 - random.Int64N(max(p.Heal*8/10, 1))
}

var windowOfLine = regexp.MustCompile(`window: [0-9]+s`)

// moments are instants at which all the given windows of a zone end.
var moments = []struct {
	zone, ends string
	windows    []string
}{
	{"UTC", "2027-01-01T00:00:00Z", []string{"day", "month", "year"}},
	{"Europe/Berlin", "2026-03-28T23:00:00Z", []string{"day", "month, starts: 29"}},           // 23 h begin
	{"Europe/Berlin", "2026-03-29T22:00:00Z", []string{"day", "week", "month, starts: 30"}},   // and end
	{"Europe/Berlin", "2026-10-25T23:00:00Z", []string{"day", "week", "year, starts: 10-26"}}, // 25 h end
	{"America/New_York", "2026-03-01T05:00:00Z", []string{"day", "month", "week, starts: sunday"}},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z", []string{"day", "month, starts: 4"}}, // no midnight
	{"America/Sao_Paulo", "2018-02-18T03:00:00Z", []string{"day", "week, starts: sunday"}},
	{"Asia/Amman", "2021-10-28T21:00:00Z", []string{"day", "month, starts: 29"}}, // two midnights
	{"Australia/Lord_Howe", "2026-04-04T13:00:00Z", []string{"day", "year, starts: 04-05"}},
	{"Pacific/Apia", "2011-12-30T10:00:00Z", []string{"day", "month, starts: 31"}}, // a day is skipped
	{"Asia/Kathmandu", "2028-02-28T18:15:00Z", []string{"day", "month, starts: 31", "year, starts: 02-29"}},
}

// judgedBy returns the limit's calendar as the judge reads it, nil if it has none.
func judgedBy(p *policy.Limit) *oracle.Calendar {
	c, ok := p.Calendar()
	if !ok {
		return nil
	}
	return &oracle.Calendar{Unit: string(c.Unit), Zone: c.Zone, Weekday: c.Weekday, Month: c.Month,
		Day: c.Day}
}

// cells returns how the bucket's time is divided into cells, windows how into windows.
func (b *bucket) cells() algorithms.Cells {
	c := algorithms.Cells{Length: b.cell()}
	if calendar, ok := b.limit.policy.Calendar(); ok {
		c.Calendar = calendar
	}
	return c
}

func (b *bucket) windows() algorithms.Cells {
	w := b.cells()
	w.Length = b.limit.policy.Window.Microseconds()
	return w
}

// windowAt returns the number of the window that holds a store time.
func (b *bucket) windowAt(t quantity.StoreTime) int64 { return int64(b.windows().At(t)) }

// starts returns the wall clock's time at the start of the run, before Into.
func (p *Plan) starts() int64 {
	if p.Began != 0 {
		return p.Began
	}
	return began
}
