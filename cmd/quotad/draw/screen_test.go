package draw

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
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

var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// TestTheDrawingStaysWhole: whatever the terminal's size is and becomes, it shows the last drawing
// and nothing of those before, each line cut to its width.
func TestTheDrawingStaysWhole(t *testing.T) {
	m := newTerminal(t, 80, 24)
	s := &Screen{Out: m, Size: func() (int, int) { return m.width, m.height }}
	for i, c := range []struct{ width, height int }{{80, 24}, {80, 24}, {60, 24}, {60, 8}, {20, 5},
		{200, 50}, {80, 24}} {
		m.resize(c.width, c.height)
		var lines, want []string
		for line := range 12 - i {
			text := fmt.Sprintf("%d \x1b[32m%s\x1b[0m ▄▇█", i, strings.Repeat(strconv.Itoa(line), (7*line+5*i)%90))
			lines = append(lines, text)
			cut := []rune(colours.ReplaceAllString(text, ""))
			want = append(want, strings.TrimRight(string(cut[:min(len(cut), c.width)]), " "))
		}
		s.Draw(lines)
		want = want[:min(len(want), c.height)]
		if got := m.shows(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%d by %d:\n%s\nwant\n%s", c.width, c.height, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if !m.other {
		t.Error("it draws over what was there")
	}
	if s.Leave(); m.other {
		t.Error("what was there before is not shown again")
	}
}
