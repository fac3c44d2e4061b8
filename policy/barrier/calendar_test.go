//go:build !race

package barrier

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// What is used or lent in a month weighs until the month is over, in the limit's time zone; in its
// last minute, until the month after it is.
func TestWhatAMonthPromisedIsOver(t *testing.T) {
	doc, err := policy.Parse("limits.yaml", []byte("version: 1\nregions: {eu: {weight: 1}}\nlimits:\n"+
		"- {name: a, domain: api, key: [k], algorithm: fixed_window, limit: 10, window: month, timezone: Europe/Berlin}\n"))
	suite.Must(t, err)
	at := func(text string) quantity.StoreTime {
		when, err := time.Parse(time.RFC3339, text)
		suite.Must(t, err)
		return quantity.StoreTime(when.UnixMicro())
	}
	for used, want := range map[string]string{
		"2026-02-28T22:59:59Z": "2026-03-31T22:00:00Z", // the last second of February
		"2026-02-28T23:00:00Z": "2026-03-31T22:00:00Z",
		"2026-03-31T21:58:59Z": "2026-03-31T22:00:00Z",
		"2026-03-31T21:59:01Z": "2026-04-30T22:00:00Z", // rows of April may have been lent
	} {
		if got := over(&doc.Limits[0], at(used)); got != at(want) {
			t.Errorf("used at %s: over at %s, want %s", used, time.UnixMicro(int64(got)).UTC(), want)
		}
	}
}
