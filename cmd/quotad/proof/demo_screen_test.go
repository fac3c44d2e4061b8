package proof

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/quotad/quotad/chaos/play/world"
)

// second is what the demo tells of a second.
func second(at int, phase string, degraded bool, admitted ...int64) world.Progress {
	p := world.Progress{Phase: phase, Elapsed: time.Duration(at) * time.Second, Limit: 5000}
	for i, name := range []string{"us-east", "eu-west", "ap-south"} {
		p.Regions = append(p.Regions, world.RegionProgress{Name: name, Entitlement: 2000,
			Offered: 18000, Admitted: admitted[i], Share: 4310, Degraded: degraded})
	}
	return p
}

// TestTheDemoFits80Columns: every line of the heading, the drawing, the plain lines and the report.
func TestTheDemoFits80Columns(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, story: world.Story{Duration: 10 * time.Minute, Seed: 18446744073709551615,
		Algorithm: "sliding_window_counter", RoundTrip: 80 * time.Millisecond}}
	s.begin("embedded")
	for phase := range tells {
		p := second(600, phase, true, 5000, 5000, 5000)
		s.show(p)
		for _, line := range s.lines(p) {
			out.WriteString(line + "\n")
		}
	}
	rebalance := 12345.0
	units := map[string]int64{"us-east": 1_080_000, "eu-west": 108_000, "ap-south": 9999}
	r := world.Report{OK: true, Ceiling: world.Ceiling{CellsChecked: 600, MaxAdmitted: 5000, Limit: 5000},
		Regions: []world.RegionReport{{Name: "us-east"}, {Name: "eu-west"}, {Name: "ap-south"}},
		Phases: []world.PhaseReport{{Name: "partition", Seconds: 120, Offered: units, Admitted: units,
			ShareEnd: units, Degraded: map[string]float64{"us-east": 1, "eu-west": 1, "ap-south": 1},
			RebalanceMS: &rebalance, FalseDenialRate: 0.3924}}}
	s.end(r)
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"1M/108k/9999", "12345 ms", "39.24%", "degraded: us-east eu-west ap-south"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("colours where none may be shown")
	}
}

func TestBars(t *testing.T) {
	for _, c := range []struct {
		units, most int64
		want        string
	}{{0, 0, "          "}, {50, 80, "#####...  "}, {80, 50, "########  "}, {100, 100, "##########"},
		{500, 900, "##########"}, {0, 100, ".........."}} {
		if got := bar(c.units, c.most, 100, 10); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.units, c.most, got, c.want)
		}
	}
	if got := graph([]int64{0, 1, 50, 99, 100, 700, -1}, 100); got != "  ▄▇██ " {
		t.Errorf("%q", got)
	}
}
