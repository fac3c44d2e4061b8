package report

import (
	"fmt"
	"html"

	"math"
	"strconv"
	"strings"
	"time"
)

// drawing collects the elements of one chart. Colours are classes of the style sheet, so that one
// drawing suits light mode, dark mode and paper.
type drawing struct {
	plot
	body strings.Builder
}

// px formats a length to a tenth of a pixel.
func px(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

func (d *drawing) rect(class string, x, y, w, h float64) {
	if w <= 0 || h <= 0 {
		return
	}
	fmt.Fprintf(&d.body, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, px(x),
		px(y), px(w), px(h))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.body, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, px(x1),
		px(y1), px(x2), px(y2))
}

func (d *drawing) path(class, data string) {
	if data != "" {
		fmt.Fprintf(&d.body, `<path class="%s" d="%s"/>`, class, data)
	}
}

// text writes s with its base line at y.
func (d *drawing) text(class string, x, y float64, s string) {
	fmt.Fprintf(&d.body, `<text class="%s" x="%s" y="%s">%s</text>`, class, px(x), px(y),
		html.EscapeString(s))
}

// tip shows the values of a column under a pointer.
func (d *drawing) tip(x, w float64, s string) {
	fmt.Fprintf(&d.body,
		`<rect class="tip" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`,
		px(x), px(d.top), px(max(w, 1)), px(d.height), html.EscapeString(s))
}

// box returns the path of a rectangle. Many rectangles of one colour make one element.
func box(x, y, w, h float64) string {
	if w <= 0 || h < 0.05 {
		return ""
	}
	return "M" + px(x) + " " + px(y) + "h" + px(w) + "v" + px(h) + "h" + px(-w) + "z"
}

// part returns the path of one part of a stack, between two amounts. It leaves a thin gap above, so
// that parts can be told apart without their colour.
func (d *drawing) part(x, w, from, to float64) string {
	top, bottom := d.y(to), d.y(from)
	if bottom-top > 2.5 {
		top += 0.8
	}
	return box(x, top, w, bottom-top)
}

// amounts draws the axis of amounts, with faint lines across the plot.
func (d *drawing) amounts(most float64, n int, whole bool) {
	for _, v := range marks(most, n, whole) {
		y := d.y(v)
		d.line("grid", d.left, y, d.end(), y)
		d.text("axis end", d.left-6, y+4, short(v))
	}
}

// times draws the time axis under the plot.
func (d *drawing) times() {
	y := d.bottom()
	d.line("base", d.left, y, d.end(), y)
	if d.length <= 0 {
		return
	}
	step := clockStep(d.length, d.ticks)
	for i := range time.Duration(d.ticks) + 1 {
		t := i * step
		if t > d.length || t < 0 {
			break
		}
		x := d.x(t)
		d.line("base", x, y, x, y+4)
		d.text("axis mid", x, y+17, instant(t, step, d.length))
	}
}

// svg closes the drawing, with room for the times below the plot. about describes the chart for
// people who cannot see it.
func (d *drawing) svg(about string) markup {
	height := d.bottom() + 24
	// Every text above is escaped where it is written.
	return markup(fmt.Sprintf(
		`<svg class="%s" viewBox="0 0 %s %s" role="img" aria-label="%s">%s</svg>`,
		d.class, px(d.width), px(height), html.EscapeString(about), d.body.String()))
}

// fit shortens a label to a width, by the usual widths of its characters.
func fit(s string, width float64) string {
	if textWidth(s) <= width {
		return s
	}
	used := runeWidth('…')
	for i, r := range s {
		if used += runeWidth(r); used > width {
			return s[:i] + "…"
		}
	}
	return s
}

// textWidth estimates the width of a label in pixels.
func textWidth(s string) float64 {
	w := 0.0
	for _, r := range s {
		w += runeWidth(r)
	}
	return w
}

func runeWidth(r rune) float64 {
	switch {
	case r >= 0x1100 && r != '…':
		return 12.5
	case strings.ContainsRune("mwMW…", r):
		return 10.6
	case r >= 'A' && r <= 'Z':
		return 8.4
	case strings.ContainsRune(" ilj.,:;'|!ftr()[]-/", r):
		return 4.6
	}
	return 7.3
}
