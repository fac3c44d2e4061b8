package asjson

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestMilliseconds(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0"},
		{time.Nanosecond, "0.001"}, // up: earlier would be too early
		{time.Microsecond, "0.001"},
		{10 * time.Microsecond, "0.01"},
		{120 * time.Microsecond, "0.12"},
		{time.Millisecond, "1"},
		{time.Minute + 250*time.Microsecond, "60000.25"},
		{1001 * time.Microsecond, "1.001"},
		{10 * 365 * 24 * time.Hour, "315360000000"},
	} {
		got, err := json.Marshal(Milliseconds(c.d))
		if err != nil || string(got) != c.want {
			t.Errorf("%v is %s, %v; want %s", c.d, got, err, c.want)
		}
	}
}

// TestMillisecondsAreExact: every microsecond of a window survives.
func TestMillisecondsAreExact(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		us := rapid.Int64Range(0, int64(366*24*time.Hour/time.Microsecond)).Draw(t, "us")
		b, err := json.Marshal(Milliseconds(time.Duration(us) * time.Microsecond))
		suite.Must(t, err)
		back, err := time.ParseDuration(string(b) + "ms")
		if err != nil || back.Microseconds() != us {
			t.Fatalf("%d us is written %s, which is %v, %v", us, b, back, err)
		}
	})
}
