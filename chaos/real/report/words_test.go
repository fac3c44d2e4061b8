package report

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestVisible(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"account-42", "account-42"},
		{"Zürich 日本", "Zürich 日本"},
		{"a\nb", `a\nb`},
		{"a\u202eb", `a\u202eb`},
		{"a\u00a0b", `a\u00a0b`},
		{"\x00\x7f", `\x00\x7f`},
		{"\xff\xfe", `\xff\xfe`},
		{"\ufeff\u200b", `\ufeff\u200b`},
		{strings.Repeat("x", longestName+1), strings.Repeat("x", longestName) + "…"},
	} {
		if got := name(c.in); got != c.want {
			t.Errorf("name(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := prose("two\n\t lines\u00a0here"); got != "two lines here" {
		t.Errorf("got %q", got)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567",
		-1000: "-1,000", -999: "-999",
		math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 16.666: "16.7", 1234.5: "1,235",
		12000: "12,000", 1.2e6: "1.2 M", 5e9: "5 G", 1 << 52: "4.504 P"} {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestPercentNeverRoundsToAll(t *testing.T) {
	for _, c := range []struct {
		part, whole int64
		want        string
	}{{0, 0, "–"}, {0, 10, "0.0\u00a0%"}, {1, 100000, "0.1\u00a0%"}, {99999, 100000, "99.9\u00a0%"},
		{100, 100, "100.0\u00a0%"}, {1214, 1000, "121.4\u00a0%"}} {
		if got := percent(c.part, c.whole); got != c.want {
			t.Errorf("percent(%d, %d) = %s, want %s", c.part, c.whole, got, c.want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 850 * time.Millisecond: "850 ms", 1500 * time.Millisecond: "1.5 s",
		40 * time.Second:  "40 s",
		130 * time.Second: "2 min 10 s", time.Hour: "1 h", 65 * time.Minute: "1 h 5 min",
		49 * time.Hour: "2 d 1 h", -3 * time.Second: "−3 s",
		999_900 * time.Microsecond: "1 s", time.Minute - time.Millisecond: "1 min",
		time.Hour - time.Millisecond: "1 h",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%d) = %s, want %s", int64(d), got, want)
		}
	}
}

func TestTotalStaysAtTheLargest(t *testing.T) {
	if got := total(math.MaxInt64, 1); got != math.MaxInt64 {
		t.Errorf("got %d", got)
	}
	if got := total(5, -3, 2); got != 7 {
		t.Errorf("a negative amount counts: got %d", got)
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		in    string
		width float64
	}{{"eu-west", 200}, {"a-region-with-a-long-name", 60}, {"日本日本日本", 40}, {"", 0}, {"x", 0}} {
		got := fit(c.in, c.width)
		if got != c.in && (textWidth(got) > c.width && got != "…" || !strings.HasSuffix(got, "…")) {
			t.Errorf("fit(%q, %v) = %q, %.0f wide", c.in, c.width, got, textWidth(got))
		}
	}
}
