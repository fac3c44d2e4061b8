package main

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/quotad/quotad/chaos/world"
)

// terminal is a twin of a terminal: a grid of characters that understands what the screen writes,
// and wraps lines that are too wide.
type terminal struct {
	t             *testing.T
	width, height int
	cells         [][]rune
	row, column   int
	other         bool // the other screen is shown
}

func newTerminal(t *testing.T, width, height int) *terminal {
	m := &terminal{t: t}
	m.resize(width, height)
	return m
}

// resize keeps what fits, as most terminals do.
func (m *terminal) resize(width, height int) {
	before := m.cells
	m.width, m.height, m.cells = width, height, nil
	for i := range height {
		line := []rune(strings.Repeat(" ", width))
		if i < len(before) {
			copy(line, before[i])
		}
		m.cells = append(m.cells, line)
	}
	m.row, m.column = min(m.row, height-1), min(m.column, width-1)
}

var escape = regexp.MustCompile(`^\x1b\[(\??[0-9;]*)([A-Za-z])`)

// Write implements io.Writer.
func (m *terminal) Write(p []byte) (int, error) {
	for rest := string(p); rest != ""; {
		if code := escape.FindStringSubmatch(rest); code != nil {
			m.obey(code[1], code[2])
			rest = rest[len(code[0]):]
			continue
		}
		c, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		m.put(c)
	}
	return len(p), nil
}

func (m *terminal) put(c rune) {
	switch c {
	case '\r':
		m.column = 0
	case '\n':
		m.down()
	case '\x1b':
		m.t.Error("an escape that is not understood")
	default:
		if m.column == m.width { // it wraps
			m.column = 0
			m.down()
		}
		m.cells[m.row][m.column] = c
		m.column++
	}
}

// down goes to the next line, and scrolls at the last one.
func (m *terminal) down() {
	if m.row++; m.row == m.height {
		m.row--
		m.cells = append(m.cells[1:], []rune(strings.Repeat(" ", m.width)))
	}
}

func (m *terminal) obey(args, code string) {
	blank := func(line []rune) {
		for i := range line {
			line[i] = ' '
		}
	}
	switch code {
	case "H":
		m.row, m.column = 0, 0
	case "K":
		blank(m.cells[m.row][min(m.column, m.width):])
	case "J":
		blank(m.cells[m.row][min(m.column, m.width):])
		for _, line := range m.cells[m.row+1:] {
			blank(line)
		}
	case "h", "l":
		if args != "?1049" {
			m.t.Errorf("mode %s", args)
		}
		m.other = code == "h"
	case "m":
		if _, err := strconv.Atoi(args); err != nil {
			m.t.Errorf("colour %q", args)
		}
	default:
		m.t.Errorf("%q is not understood", args+code)
	}
}

// shows returns the lines without blanks at their ends.
func (m *terminal) shows() (lines []string) {
	for _, line := range m.cells {
		lines = append(lines, strings.TrimRight(string(line), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// second is what the demo tells of a second.
func second(at int, phase string, degraded bool, admitted ...int64) world.Progress {
	p := world.Progress{Phase: phase, Elapsed: time.Duration(at) * time.Second, Limit: 5000}
	for i, name := range []string{"us-east", "eu-west", "ap-south"} {
		p.Regions = append(p.Regions, world.RegionProgress{Name: name, Entitlement: 2000,
			Offered: 18000, Admitted: admitted[i], Share: 4310, Degraded: degraded})
	}
	return p
}

// plain is a drawing without colours.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// TestTheDrawingStaysWhole: whatever the terminal's size is and becomes, it shows the last second
// and nothing of those before, each line cut to its width.
func TestTheDrawingStaysWhole(t *testing.T) {
	m := newTerminal(t, 80, 24)
	s := &screen{out: m, live: true, colour: true, size: func() (int, int) { return m.width, m.height }}
	for i, c := range []struct{ width, height int }{{80, 24}, {80, 24}, {60, 24}, {60, 8}, {20, 5},
		{200, 50}, {80, 24}} {
		m.resize(c.width, c.height)
		phase := "partition"
		if i%2 == 0 {
			phase = "skew"
		}
		p := second(i, phase, i%2 == 1, int64(i), 4310, 0)
		before := s.totals
		s.draw(p)
		s.totals = before
		var want []string
		for _, line := range s.lines(p)[:min(len(s.lines(p)), c.height)] {
			s.totals = before
			cut := []rune(colours.ReplaceAllString(line, ""))
			want = append(want, strings.TrimRight(string(cut[:min(len(cut), c.width)]), " "))
		}
		if got := m.shows(); strings.Join(got, "\n") != strings.TrimRight(strings.Join(want, "\n"), "\n") {
			t.Errorf("%d by %d:\n%s\nwant\n%s", c.width, c.height, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if !m.other {
		t.Error("it draws over what was there")
	}
	if s.leave(); m.other {
		t.Error("what was there before is not shown again")
	}
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
