package proof

import (
	"fmt"
	"io"
	"strings"

	"github.com/quotad/quotad/chaos/play/world"
	"github.com/quotad/quotad/cmd/quotad/draw"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// screen shows a demo: on a terminal it draws the last second, elsewhere it prints a line for each.
type screen struct {
	out    io.Writer
	story  world.Story
	live   bool
	colour bool
	drawn  draw.Screen
	phase  string
	totals []int64 // admitted in each second so far, the last ones
}

func newScreen(out io.Writer, story world.Story) *screen {
	return &screen{out: out, story: story, live: show.IsTerminal(out), colour: show.Colour(out),
		drawn: draw.Screen{Out: out}}
}

func (s *screen) begin(redis string) {
	fmt.Fprintf(s.out, "quotad demo: three regions in this process, a Redis each (%s),\n"+
		"%s round trip between them. %s, %s,\nseed %d. Not for production: nothing here is kept.\n\n",
		redis, s.story.RoundTrip, s.story.Algorithm, show.Span(s.story.Duration), s.story.Seed)
}

// tells says what each phase shows.
var tells = map[string]string{
	"steady":    "demand fits the fixed split",
	"skew":      "us-east wants more and borrows what the others leave",
	"partition": "us-east is cut off: it falls to its fixed split by itself",
	"flood":     "all want more, us-east still cut off: the limit holds",
	"heal":      "the cut is over: shares flow back",
}

// show shows one second.
func (s *screen) show(p world.Progress) {
	if s.live {
		s.drawn.Draw(s.lines(p))
		return
	}
	if p.Phase != s.phase {
		s.phase = p.Phase
		fmt.Fprintf(s.out, "%s: %s\n", p.Phase, tells[p.Phase])
	}
	var total int64
	fmt.Fprintf(s.out, "%4.0fs ", p.Elapsed.Seconds())
	for _, r := range p.Regions {
		total += r.Admitted
		degraded := " "
		if r.Degraded {
			degraded = "*"
		}
		fmt.Fprintf(s.out, " %s %4d/%-4d%s", r.Name, r.Admitted, r.Share, degraded)
	}
	fmt.Fprintf(s.out, " = %d\n", total)
}

const (
	barWidth   = 22 // of a region's bar
	totalWidth = 42 // of the total's bar, and seconds that are drawn
)

// lines returns the drawing of a second. None is wider than 80 columns.
func (s *screen) lines(p world.Progress) (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	line("%4.0fs  %s: %s", p.Elapsed.Seconds(), s.paint("1", p.Phase), tells[p.Phase])
	line("")
	line("  %-9s%8s %9s %7s %7s   admitted # of its share .", "region", "offered", "admitted", "share",
		"split")
	var total int64
	for _, r := range p.Regions {
		total += r.Admitted
		code, state := "32", ""
		if r.Degraded {
			code, state = "33", s.paint("33", " degraded")
		}
		line("  %-9s%8d %9d %7d %7d  %s%s", r.Name, r.Offered, r.Admitted, r.Share, r.Entitlement,
			s.paint(code, bar(r.Admitted, r.Share, p.Limit, barWidth)), state)
	}
	s.totals = append(s.totals, total)
	s.totals = s.totals[max(len(s.totals)-totalWidth, 0):]
	line("")
	line("  all       %7d of %-7d %s|", total, p.Limit,
		s.paint("36", bar(total, p.Limit, p.Limit, totalWidth)))
	line("  the last seconds, up to the limit: %s", s.paint("36", graph(s.totals, p.Limit)))
	return lines
}

// bar draws units as # and what is left of most as dots, on a scale of so many units.
func bar(units, most, scale int64, width int) string {
	cells := func(n int64) int { return int(min(n*int64(width)/max(scale, 1), int64(width))) }
	filled := cells(units)
	dots := max(cells(most)-filled, 0)
	return strings.Repeat("#", filled) + strings.Repeat(".", dots) +
		strings.Repeat(" ", width-filled-dots)
}

// levels are the heights of a graph.
var levels = []rune(" ▁▂▃▄▅▆▇█")

// graph draws one column for each amount, which is full at most.
func graph(amounts []int64, most int64) string {
	columns := make([]rune, len(amounts))
	top := int64(len(levels) - 1)
	for i, n := range amounts {
		columns[i] = levels[min(max(n*top/max(most, 1), 0), top)]
	}
	return string(columns)
}

// paint colours a text, where colours may be shown.
func (s *screen) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
