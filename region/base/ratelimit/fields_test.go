package ratelimit

import (
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
)

const day = 24 * time.Hour

// fields returns both fields about some limits, and refuses what is no structured field.
func fields(t *testing.T, f Fields, all ...Limit) (policy, limit string) {
	t.Helper()
	for _, l := range all {
		f.Add(l)
	}
	h := http.Header{}
	f.Set(h)
	for name, values := range h {
		if _, err := httpsfv.UnmarshalList(values); err != nil {
			t.Errorf("%s: %q: %v", name, values, err)
		}
	}
	return h.Get("RateLimit-Policy"), h.Get("RateLimit")
}

func TestFields(t *testing.T) {
	for name, c := range map[string]struct {
		all           []Limit
		policy, limit string
	}{
		"nothing": {},
		"one": {[]Limit{{Name: "a", Units: 1000, Window: time.Minute, Counted: true, Left: 57,
			Until: 10*time.Second + 1, Share: 425}},
			`"a";q=1000;w=60`, `"a";r=57;t=11;quotad-share=425`},
		"of a unit that the draft lists": {[]Limit{{Name: "a", Units: 5, Unit: "content-bytes", Window: time.Minute}},
			`"a";q=5;qu="content-bytes";w=60`, ""},
		"of a unit that the draft does not list": {[]Limit{{Name: "a", Units: 5, Unit: "tokens", Window: time.Minute}},
			`"a";q=5;qu="tokens";w=60`, ""},
		"several, one twice": {[]Limit{{Name: "a", Units: 5, Window: 500 * time.Millisecond, Counted: true, Left: 9},
			{Name: "b", Units: 6, Counted: true, Share: -1, Degraded: true}, {Name: "a", Units: 7}},
			`"a";q=5, "b";q=6`, `"a";r=5;quotad-share=0, "b";r=0;quotad-degraded`},
		"odd names": {[]Limit{{Name: `a"\b`, Units: 1 << 51}, {Name: "höhe"}, {Name: "c", Unit: "\n"}},
			`"a\"\\b";q=999999999999999`, ""},
	} {
		policy, limit := fields(t, Fields{}, c.all...)
		if policy != c.policy || limit != c.limit {
			t.Errorf("%s:\ngot\n%s\n%s\nwant\n%s\n%s", name, policy, limit, c.policy, c.limit)
		}
	}
}

// TestPolicyStays: over a sequence of answers RateLimit-Policy is one text, whatever else changes.
func TestPolicyStays(t *testing.T) {
	policies, limits := map[string]bool{}, map[string]bool{}
	for i := range int64(10) {
		policy, limit := fields(t, Fields{MaxRate: DefaultMaxRate}, Limit{Name: "a", Units: 1000,
			Unit: "requests", Window: day, Counted: i%3 > 0, Left: 1000 - i, Until: day - time.Duration(i)*time.Second,
			Share: 400 + i, Degraded: i%2 == 0})
		policies[policy], limits[limit] = true, true
	}
	if len(policies) != 1 || len(limits) < 5 {
		t.Errorf("%d policies, %d limits", len(policies), len(limits))
	}
}

// TestRateIsCapped: of a window of a day or longer the fields suggest at most so many times the
// average rate, but never that nothing is left where something is.
func TestRateIsCapped(t *testing.T) {
	for _, c := range []struct {
		rate, units, left int64
		window, until     time.Duration
		want              int64
	}{
		{10, 86400, 86400, day, day, 86400},                       // its beginning: the average rate
		{10, 86400, 50000, day, time.Minute, 600},                 // its last minute: ten a second
		{10, 86400, 500, day, time.Minute, 500},                   // less is left
		{10, 86400, 86400, day, day / 10, 86400},                  // the last moment at which all is said
		{10, 86400, 86400, day, day/10 - time.Second, 86390},      // and the first at which it is not
		{10, 1000, 900, day, time.Second, 1},                      // less than one
		{10, 1000, 0, day, time.Second, 0},                        // none is none
		{10, 86400, 50000, day - time.Second, time.Minute, 50000}, // a short window
		{0, 86400, 50000, day, time.Minute, 50000},                // no bound
		{10, 86400, 50000, day, 0, 50000},                         // no t, no rate
		{10, 1 << 51, 1 << 51, 366 * day, time.Second, (1 << 51) / 366 / 8640},
		{MaxMaxRate, 1 << 51, 1 << 51, 366 * day, time.Second, 71_209_010_501}, // nothing overflows
	} {
		_, limit := fields(t, Fields{MaxRate: c.rate}, Limit{Name: "a", Units: c.units, Window: c.window,
			Counted: true, Left: c.left, Until: c.until, Share: -1})
		want := fmt.Sprintf(`"a";r=%d`, min(c.want, maxInteger))
		if c.until > 0 {
			want += fmt.Sprintf(";t=%d", int64(math.Ceil(c.until.Seconds())))
		}
		if limit != want {
			t.Errorf("%+v: %s, want %s", c, limit, want)
		}
	}
}

func TestRoundUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Microsecond: 1, time.Second - 1: 1, time.Second: 1, time.Second + 1: 2,
		time.Minute: 60} {
		if got := RoundUp(d, time.Second); got != want {
			t.Errorf("%v is %d s, want %d", d, got, want)
		}
	}
}
