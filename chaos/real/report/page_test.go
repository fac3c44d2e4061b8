package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// drawings finds the charts of a page.
var drawings = regexp.MustCompile(`(?s)<svg.*?</svg>`)

// checkPage fails unless the page is self-contained, its charts are well-formed, and it has no
// invisible characters.
func checkPage(t *testing.T, page string) {
	t.Helper()
	if !utf8.ValidString(page) {
		t.Error("the page is not UTF-8")
	}
	for _, r := range page {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Fatalf("the page holds the character %U, which nobody can see", r)
		}
	}
	for _, word := range []string{"<script", "<link", "<img", "<iframe", " src=", " href=",
		"@import", "<svg onload"} {
		if strings.Contains(page, word) {
			t.Errorf("the page holds %q", word)
		}
	}
	if n := strings.Count(page, "url("); n != strings.Count(page, "url(#") {
		t.Error("the style refers to something outside the page")
	}
	for _, svg := range drawings.FindAllString(page, -1) {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("a chart is not well-formed: %v\n%.300s", err, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("a chart holds a number that is none: %.300s", svg)
		}
	}
}

func TestPagesStandByThemselves(t *testing.T) {
	for title, r := range samples() {
		t.Run(title, func(t *testing.T) {
			page := written(t, r)
			checkPage(t, page)
			if strings.Contains(page, "http:") || strings.Contains(page, "https:") {
				t.Error("the page names an address outside itself")
			}
			if len(page) > 1<<20 {
				t.Errorf("the page has %d bytes, more than a mail bears", len(page))
			}
		})
	}
}

func TestTheVerdictComesFirst(t *testing.T) {
	for _, c := range []struct {
		run  Run
		word string
	}{{heldRun(), "Passed"}, {brokenRun(), "Failed"}} {
		page := written(t, c.run)
		if !strings.Contains(page, "<title>"+c.word+": ") {
			t.Errorf("the title of the page does not begin with %s", c.word)
		}
		order := []string{c.word + "</span>", c.run.Verdict, "<h2>Expectations", "What was broken",
			"<h2>Limit", "<h2>Steps", "<h2>How it was run"}
		last := 0
		for _, part := range order {
			i := strings.Index(page[last:], part)
			if i < 0 {
				t.Fatalf("%q does not come after the parts before it", part)
			}
			last += i
		}
	}
}

func TestEveryExpectationIsThereWithItsFigure(t *testing.T) {
	r := brokenRun()
	page := written(t, r)
	for _, e := range r.Expectations {
		for _, text := range []string{e.Text, e.Want, e.Got} {
			if !strings.Contains(page, "<bdi>"+text+"</bdi>") {
				t.Errorf("the page does not say %q", text)
			}
		}
	}
	if got := strings.Count(page, `<tr class="bad">`); got != 2 {
		t.Errorf("%d expectations are marked as not met, want 2", got)
	}
}

func TestNamesCannotBecomeMarkup(t *testing.T) {
	page := written(t, hostileRun())
	checkPage(t, page)
	if !strings.Contains(page, `\u202egnp.exe`) || !strings.Contains(page, `\xff`) {
		t.Error("the hidden characters of a name are not spelled out")
	}
}

func TestExcessIsDrawnOnlyWhereItIs(t *testing.T) {
	if page := written(t, heldRun()); strings.Contains(page, `<path class="excess"`) ||
		strings.Contains(page, `<path class="doubt"`) {
		t.Error("a run that held shows an excess")
	}
	page := written(t, brokenRun())
	for _, class := range []string{`<path class="excess"`, `<path class="doubt"`,
		`<line class="allowed"`} {
		if strings.Count(page, class) != 2 {
			t.Errorf("%s is not drawn once in each width", class)
		}
	}
}

func TestBandsBehindEveryChart(t *testing.T) {
	r := heldRun()
	page := written(t, r)
	// Three charts, each in two widths.
	if got := strings.Count(page, `<rect class="band"`); got != 6 {
		t.Errorf("the band is drawn %d times, want 6", got)
	}
}

func TestWriteSaysWhyItFailed(t *testing.T) {
	full := errors.New("disk full")
	err := Write(failing{full}, heldRun())
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "Full split") {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func FuzzWrite(f *testing.F) {
	f.Add(hostile, int64(1000), int64(time.Second), int64(time.Minute))
	f.Add("", int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64))
	f.Add("日本\u2028", int64(-1), int64(0), int64(1))
	f.Fuzz(func(t *testing.T, s string, amount, when, length int64) {
		at, long := time.Duration(when), time.Duration(length)
		list := []int64{amount, amount / 2, -amount}
		r := Run{
			Title: s, About: s, Command: s, Verdict: s, Version: s, Length: long,
			Regions: []string{s, "b" + s},
			Bands: []Band{{From: at, To: long, Name: s, About: s},
				{From: at, To: at, Name: s + "2"}},
			Steps:        []Step{{At: at, Text: s, Outcome: s}},
			Expectations: []Expectation{{Text: s, Want: s, Got: s}},
			Notes:        []string{s}, Facts: []Fact{{s, s}},
			Limits: []Limit{{
				Name: s, Key: s, Algorithm: s, Units: amount, Burst: -amount, Window: at,
				Max: amount, Excess: -amount, Allowed: amount, Allowance: s, Pooled: amount,
				Slots: []Slot{{At: at, Length: long, Offered: list, Admitted: list[:1]},
					{At: at, Length: 1, Unknown: list}},
				Cells: []Cell{{From: at, Length: long, Admitted: list, Unknown: amount},
					{From: at / 2, Length: at, Level: amount / 3}},
				Shares: []Share{{At: at, Region: int(amount), Share: amount},
					{At: long, Region: 1, Share: -amount, Entitlement: amount, Degraded: true}},
			}},
		}
		checkPage(t, written(t, r))
		r.Limits[0].Cells = r.Limits[0].Cells[:1]
		checkPage(t, written(t, r))
	})
}
