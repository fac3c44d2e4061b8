package policy

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestParseWindow(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"500ms":                       500 * time.Millisecond,
		"10s":                         10 * time.Second,
		"1m":                          time.Minute,
		"1h":                          time.Hour,
		"24h":                         day,
		"1d":                          day,
		"1w":                          7 * day,
		"1w1d":                        8 * day,
		"1h30m":                       90 * time.Minute,
		"1.5h":                        90 * time.Minute,
		"0.5d":                        12 * time.Hour,
		"0.1s":                        100 * time.Millisecond,
		"1.000001s":                   time.Second + time.Microsecond,
		"10000us":                     10 * time.Millisecond,
		"10000µs":                     10 * time.Millisecond,
		"10000μs":                     10 * time.Millisecond,
		"10000000ns":                  10 * time.Millisecond,
		"366d":                        366 * day,
		"0s":                          0,
		"367d":                        beyondWindow,
		"300d300d":                    beyondWindow,
		"366.5d":                      beyondWindow,
		"99999999999w":                beyondWindow,
		"99999999999999999999999999s": beyondWindow,
	} {
		if got, ok := parseWindow(text); !ok || got != want {
			t.Errorf("parseWindow(%q) = %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "1", "m", "1 m", " 1m", "1m ", "-1m", "+1m", "1M", "1min", "1month", "1.m", ".5m",
		"1..5m", "1.5.5m",
		"1,5m", "1e3s", "1.5ns", "0.0000000001s", "1m1", "1_000s", "٣s",
	} {
		if got, ok := parseWindow(text); ok {
			t.Errorf("parseWindow(%q) = %v, want a refusal", text, got)
		}
	}
}

// TestParseWindowIsGo compares parseWindow with Go's own durations, of which it reads all positive
// ones, and FormatWindow with parseWindow.
func TestParseWindowIsGo(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Range(1, int64(MaxWindow)).Draw(t, "nanoseconds"))
		if got, ok := parseWindow(want.String()); !ok || got != want {
			t.Fatalf("parseWindow(%q) = %v, %v", want, got, ok)
		}
		if got, ok := parseWindow(FormatWindow(want)); !ok || got != want {
			t.Fatalf("parseWindow(%q) = %v, %v, want %v", FormatWindow(want), got, ok, want)
		}
	})
}

func TestFormatWindow(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"1m": time.Minute, "1m30s": 90 * time.Second, "1d": 24 * time.Hour,
		"7d":  7 * 24 * time.Hour,
		"30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "0s": 0,
		"10ms": 10 * time.Millisecond, "1s5us": time.Second + 5*time.Microsecond,
	} {
		if got := FormatWindow(d); got != want {
			t.Errorf("FormatWindow(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestParsePPM(t *testing.T) {
	for text, want := range map[string]PPM{
		"0": 0, "0.0": 0, "1": PPMOne, "1.0": PPMOne, "0.5": 500_000, "0.95": 950_000,
		"0.000001": 1,
		"0.123456": 123_456, "12.5": 12_500_000, "1000000": MaxBorrowingLimit,
		"9223372036854775807": math.MaxInt64, // saturates
	} {
		if got, ok := parsePPM(text); !ok || got != want {
			t.Errorf("parsePPM(%q) = %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", ".", ".5", "1.", "-1", "+1", "01", "00", "1e3", "0x1", "1_0",
		"0.1234567", "1.2.3", "50%", "½"} {
		if got, ok := parsePPM(text); ok {
			t.Errorf("parsePPM(%q) = %d, want a refusal", text, got)
		}
	}
}

func TestPPMText(t *testing.T) {
	for want, p := range map[string]PPM{
		"0": 0, "1": PPMOne, "0.5": 500_000, "0.000001": 1, "0.95": DefaultLendingLimit,
		"2.25":      2_250_000,
		"unlimited": Unlimited, "-0.5": -500_000,
	} {
		if got := p.String(); got != want {
			t.Errorf("PPM(%d).String() = %q, want %q", int64(p), got, want)
		}
	}
	suite.Check(t, func(t *rapid.T) {
		p := PPM(rapid.Int64Range(0, int64(MaxBorrowingLimit)).Draw(t, "ppm"))
		if got, ok := parsePPM(p.String()); !ok || got != p {
			t.Fatalf("parsePPM(%q) = %d, %v, want %d", p, got, ok, p)
		}
	})
}

func TestIsInteger(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "7": true, "10": true, "-1": true, "99999999999999999999": true,
		"": false, "-": false, "-0": false, "00": false, "01": false, "+1": false, "1.0": false,
		"1e3": false,
		"0x1": false, "1_0": false, " 1": false, "--1": false,
	} {
		if got := isInteger(text); got != want {
			t.Errorf("isInteger(%q) = %v", text, got)
		}
	}
}
