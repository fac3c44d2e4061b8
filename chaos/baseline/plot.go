package baseline

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// Plot draws overshoot against false denials, for all systems and workloads: a small mark for each
// of the figures, and a large one with a name at each system's mean. The nearer a mark is to the
// lower left corner, the better. The result is a self-contained SVG document that follows the
// reader's light or dark setting. The same figures give the same bytes.
func Plot(rows []Figures) string {
	all := Overview(rows)
	var b strings.Builder
	fmt.Fprintf(&b, plotHead, plotWidth, plotHeight, plotWidth, plotHeight)
	drawAxes(&b)
	for i, o := range all {
		for _, f := range rows {
			if f.System == o.System {
				drawMark(&b, i, 3, "small", spot{falseScale.place(f.FalseRate),
					overScale.place(f.OvershootMax)},
					fmt.Sprintf("%s, %s: %s over, %s falsely denied", f.System, f.Workload,
						f.OvershootMax, f.FalseRate))
			}
		}
	}
	drawMeans(&b, all)
	b.WriteString("</svg>\n")
	return b.String()
}

// The picture in pixels. The plot has a margin on each side.
const (
	plotWidth, plotHeight   = 860, 560
	left, right, top, floor = 86, 830, 64, 490
)

// plotHead begins the document. The colours are those of Okabe and Ito, which people with any
// colour vision can tell apart. Shapes differ, too.
const plotHead = `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="Overshoot against false denials, by system">
<style>
svg { color: #1f2328; background: #ffffff }
.axis, .grid { stroke: currentColor; stroke-width: 1 } .grid { opacity: .13 } .lead { stroke: currentColor; opacity: .35 }
text { fill: currentColor } .soft { opacity: .72 } .name { font-weight: 600; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round }
.small { opacity: .45 } .large { stroke: currentColor; stroke-width: 1.5 }
.c0 { fill: #0072b2 } .c1 { fill: #d55e00 } .c2 { fill: #009e73 } .c3 { fill: #cc79a7 } .c4 { fill: #e69f00 } .c5 { fill: #56b4e9 } .c6 { fill: #b8a800 } .c7 { fill: #767676 }
@media (prefers-color-scheme: dark) { svg { color: #e6edf3; background: #0d1117 } .name { stroke: #0d1117 } .c0 { fill: #3a9ae0 } .c6 { fill: #f0e442 } .c7 { fill: #a8a8a8 } }
</style>
`

// scale spaces its ticks equally, and interpolates linearly between two of them. It is like a
// logarithmic scale, but has a zero.
type scale struct {
	ticks    []Millionths
	from, to int64 // pixels
}

var (
	falseScale = scale{[]Millionths{0, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000}, left,
		right}
	overScale = scale{[]Millionths{0, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000,
		10_000_000}, floor, top}
)

// tick returns the position of a tick in tenths of a pixel.
func (s scale) tick(i int) int64 {
	return 10*s.from + 10*(s.to-s.from)*int64(i)/int64(len(s.ticks)-1)
}

// place returns the position of a part in tenths of a pixel. Parts beyond the last tick are at the
// last tick.
func (s scale) place(m Millionths) int64 {
	i := slices.IndexFunc(s.ticks, func(t Millionths) bool { return m < t })
	switch i {
	case -1:
		return s.tick(len(s.ticks) - 1)
	case 0:
		return s.tick(0)
	}
	from, to := s.ticks[i-1], s.ticks[i]
	return s.tick(i-1) + (s.tick(i)-s.tick(i-1))*int64(m-from)/int64(to-from)
}

// spot is a position in tenths of a pixel.
type spot struct{ x, y int64 }

// px formats tenths of a pixel.
func px(tenths int64) string { return fmt.Sprintf("%d.%d", tenths/10, tenths%10) }

// escape makes text safe within an element.
func escape(text string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(text)) // a strings.Builder does not fail
	return b.String()
}

// drawAxes draws everything but the marks.
func drawAxes(b *strings.Builder) {
	fmt.Fprintf(b, `<text x="%d" y="24" font-size="16" font-weight="600">Above the limit, and denied without need</text>`+"\n", left)
	fmt.Fprintf(b, `<text x="%d" y="44" class="soft">each small mark is one workload, each large one a system's mean over all of them; lower left is better</text>`+"\n", left)
	for i, t := range falseScale.ticks {
		x := px(falseScale.tick(i))
		fmt.Fprintf(b, `<line class="grid" x1="%s" y1="%d" x2="%s" y2="%d"/><text class="soft" x="%s" y="%d" text-anchor="middle">%s</text>`+"\n", x, top, x, floor, x, floor+20, percent(t))
	}
	for i, t := range overScale.ticks {
		y := overScale.tick(i)
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%s" x2="%d" y2="%s"/><text class="soft" x="%d" y="%s" text-anchor="end">%s</text>`+"\n", left, px(y), right, px(y), left-10, px(y+45), percent(t))
	}
	fmt.Fprintf(b, `<path class="axis" fill="none" d="M%d %dV%dH%d"/>`+"\n", left, top, floor,
		right)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">false denials: units that one pooled limiter admits and the system did not</text>`+"\n", (left+right)/2, floor+46)
	fmt.Fprintf(b, `<text transform="translate(22 %d) rotate(-90)" text-anchor="middle">overshoot of the worst window, of the limit</text>`+"\n", (top+floor)/2)
}

// percent formats a tick.
func percent(m Millionths) string {
	if m%10_000 == 0 {
		return fmt.Sprintf("%d %%", m/10_000)
	}
	return fmt.Sprintf("%d.%d %%", m/10_000, m/1000%10)
}

// drawMark draws the mark of system number i with a radius in pixels.
func drawMark(b *strings.Builder, i int, radius int64, class string, at spot, title string) {
	r := 10 * radius
	x, y := func(d int64) string { return px(at.x + d) },
		func(d int64) string { return px(at.y + d) }
	class = fmt.Sprintf("%s c%d", class, i%8)
	switch i % 4 {
	case 0:
		fmt.Fprintf(b, `<circle class="%s" cx="%s" cy="%s" r="%s">`, class, x(0), y(0), px(r))
		fmt.Fprintf(b, "<title>%s</title></circle>\n", escape(title))
		return
	case 1:
		fmt.Fprintf(b, `<path class="%s" d="M%s %sH%sV%sH%sZ">`, class, x(-r), y(-r), x(r), y(r),
			x(-r))
	case 2:
		fmt.Fprintf(b, `<path class="%s" d="M%s %sL%s %sL%s %sZ">`, class, x(0), y(-r-r/4),
			x(r+r/4), y(r), x(-r-r/4), y(r))
	case 3:
		fmt.Fprintf(b, `<path class="%s" d="M%s %sL%s %sL%s %sL%s %sZ">`, class, x(0), y(-r-r/3),
			x(r+r/3), y(0), x(0), y(r+r/3), x(-r-r/3), y(0))
	}
	fmt.Fprintf(b, "<title>%s</title></path>\n", escape(title))
}

// drawMeans draws each system's mean with its name. Names that would overlap are placed one above
// the other.
func drawMeans(b *strings.Builder, all []Overall) {
	const line, reach = 170, 2000 // size of a name, in tenths of a pixel
	order := make([]int, len(all))
	at := make([]spot, len(all))
	for i, o := range all {
		order[i], at[i] = i, spot{falseScale.place(o.False), overScale.place(o.Over)}
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(at[j].y - at[i].y) })
	var names []spot
	for _, i := range order {
		name := spot{at[i].x + 140, at[i].y - 60}
		name.x = min(name.x, 10*right-reach/2)
		for _, n := range names { // from the lowest up
			if max(n.x-name.x, name.x-n.x) < reach && n.y-name.y < line {
				name.y = n.y - line
			}
		}
		names = append(names, name)
		fmt.Fprintf(b, `<line class="lead" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", px(at[i].x),
			px(at[i].y), px(name.x-20), px(name.y-40))
		drawMark(b, i, 7, "large", at[i],
			fmt.Sprintf("%s: %s over and %s falsely denied in the mean", all[i].System, all[i].Over,
				all[i].False))
		fmt.Fprintf(b, `<text class="name" x="%s" y="%s">%s</text>`+"\n", px(name.x), px(name.y),
			escape(caption(all[i])))
	}
}

// caption returns a system's name, with numbers that the axes do not show.
func caption(o Overall) string {
	if o.WaitP99 == 0 {
		return o.System
	}
	return o.System + ", waits " + millis(o.WaitP99)
}
