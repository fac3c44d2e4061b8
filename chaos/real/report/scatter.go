package report

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strconv"
)

// Scatter is a chart of what was measured in two ways, both in percent and the better the lower. It
// is a picture of its own, not a part of a page.
type Scatter struct {
	Title, Note string
	Across, Up  string // what the axes are about
	Groups      []Group
}

// Group is what has one colour and shape: small marks, and a large one with a name.
type Group struct {
	Name  string
	Mean  Mark
	Marks []Mark
}

// Mark is one point, in percent, with the text that it shows under a pointer.
type Mark struct {
	X, Y float64
	Text string
}

// The marks on the axes of a Scatter, in percent.
var (
	acrossTicks = []float64{0, 0.3, 1, 3, 10, 30, 100}
	upTicks     = []float64{0, 0.3, 1, 3, 10, 30, 100, 300, 1000}
)

// SVG returns the chart as a document that stands by itself and follows the reader's light or dark
// setting. The same chart gives the same bytes.
func (s Scatter) SVG() string {
	d := &drawing{plot: plot{layout: layout{width: 860, left: 86, right: 30}, top: 64, height: 426}}
	d.text("title", d.left, 24, s.Title)
	d.text("axis", d.left, 44, s.Note)
	for i, t := range acrossTicks {
		x := d.across(t)
		d.line("grid", x, d.top, x, d.bottom())
		d.text("axis mid", x, d.bottom()+20, percentTick(acrossTicks[i]))
	}
	for i, t := range upTicks {
		y := d.up(t)
		d.line("grid", d.left, y, d.end(), y)
		d.text("axis end", d.left-10, y+4.5, percentTick(upTicks[i]))
	}
	d.line("base", d.left, d.bottom(), d.end(), d.bottom())
	d.line("base", d.left, d.top, d.left, d.bottom())
	d.text("mid", d.left+d.inner()/2, d.bottom()+46, s.Across)
	fmt.Fprintf(&d.body, `<text class="mid" transform="translate(22 %s) rotate(-90)">%s</text>`,
		px(d.top+d.height/2), html.EscapeString(s.Up))
	for i, g := range s.Groups {
		for _, m := range g.Marks {
			d.mark(i, 3, "faint", m)
		}
	}
	d.means(s.Groups)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" `+
		`style="background: var(--paper)" role="img" aria-label="%[3]s"><style>%[4]s</style>%[5]s</svg>`+"\n",
		px(d.width), px(d.bottom()+70), html.EscapeString(s.Title+": "+s.Across+"; "+s.Up), chartStyle, d.body.String())
}

func percentTick(t float64) string { return strconv.FormatFloat(t, 'f', -1, 64) + " %" }

// place returns where a value is between the first tick, 0, and the last, 1. Ticks are equally far
// apart, with a straight line between two of them: like a logarithmic scale, but with a zero.
func place(ticks []float64, v float64) float64 {
	i := slices.IndexFunc(ticks, func(t float64) bool { return v < t })
	switch i {
	case -1:
		return 1
	case 0:
		return 0
	}
	from, to := ticks[i-1], ticks[i]
	return (float64(i-1) + (v-from)/(to-from)) / float64(len(ticks)-1)
}

func (d *drawing) across(v float64) float64 { return d.left + d.inner()*place(acrossTicks, v) }

func (d *drawing) up(v float64) float64 { return d.bottom() - d.height*place(upTicks, v) }

// mark draws a mark of group i with a radius in pixels. Shapes differ as well as colours.
func (d *drawing) mark(i int, r float64, class string, m Mark) {
	x, y := d.across(m.X), d.up(m.Y)
	var shape string
	switch i % 4 {
	case 0:
		arc := "a" + px(r) + " " + px(r) + " 0 1 0 "
		shape = "M" + px(x-r) + " " + px(y) + arc + px(2*r) + " 0" + arc + px(-2*r) + " 0z"
	case 1:
		shape = box(x-r, y-r, 2*r, 2*r)
	case 2:
		r *= 1.25
		shape = "M" + px(x) + " " + px(y-r) + "l" + px(r) + " " + px(2*r) + "h" + px(-2*r) + "z"
	case 3:
		r *= 1.33
		shape = "M" + px(x) + " " + px(y-r) + "l" + px(r) + " " + px(r) + "l" + px(-r) + " " + px(r) + "l" + px(-r) + " " + px(-r) + "z"
	}
	fmt.Fprintf(&d.body, `<path class="%s %s" d="%s"><title>%s</title></path>`, class, fill(i), shape,
		html.EscapeString(m.Text))
}

// means draws the large mark of each group with its name. Names that would overlap are placed one
// above the other.
func (d *drawing) means(groups []Group) {
	const line, reach = 17, 200 // size of a name
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(d.up(groups[j].Mean.Y), d.up(groups[i].Mean.Y)) })
	var names [][2]float64
	for _, i := range order {
		m := groups[i].Mean
		x, y := min(d.across(m.X)+14, d.end()-reach/2), d.up(m.Y)-6
		for _, n := range names { // from the lowest up
			if max(n[0]-x, x-n[0]) < reach && n[1]-y < line {
				y = n[1] - line
			}
		}
		names = append(names, [2]float64{x, y})
		d.line("lead", d.across(m.X), d.up(m.Y), x-2, y-4)
		d.mark(i, 7, "mean", m)
		d.text("named", x, y, groups[i].Name)
	}
}
