package report

import (
	"fmt"
	"strings"
	"time"
)

// narrowest is the minimum width of a column, in pixels.
const narrowest = 3.0

// column is what a chart draws for one cell.
type column struct {
	x, width float64
	cell     Cell
	// known is what was admitted for certain. most also counts unknown outcomes, or is the level if
	// the cell has one.
	known, most int64
}

// bound returns the ceiling of the limit: the maximum for each cell.
func (l Limit) bound() int64 {
	if l.Burst > 0 {
		return l.Burst
	}
	return l.Units
}

// weighed reports whether the ceiling bounds a level, and not a sum over the cell.
func (l Limit) weighed() bool {
	for _, c := range l.Cells {
		if c.Level > 0 {
			return true
		}
	}
	return false
}

// columns places the cells. If there are more cells than columns fit, each column shows the highest
// of the cells that begin in it, so that no excess is hidden. thinned reports whether this was
// done.
func (p plot) columns(cells []Cell, weighed bool) (list []column, thinned bool) {
	room := max(1, int(p.inner()/narrowest))
	thinned = len(cells) > room
	slot := -1
	for _, cell := range cells {
		if cell.From > p.length || cell.From+max(0, cell.Length) < 0 {
			continue
		}
		c := p.column(cell, weighed)
		if !thinned {
			list = append(list, c)
			continue
		}
		here := min(room-1, int((c.x-p.left)/narrowest))
		c.x, c.width = p.left+float64(here)*narrowest, narrowest
		if here != slot || len(list) == 0 {
			slot = here
			list = append(list, c)
		} else if last := &list[len(list)-1]; c.most > last.most {
			*last = c
		}
	}
	return list, thinned
}

// column places one cell.
func (p plot) column(cell Cell, weighed bool) column {
	x := p.x(cell.From)
	c := column{x: x, width: p.x(cell.From+max(0, cell.Length)) - x, cell: cell}
	switch {
	case c.width > 6:
		c.x, c.width = c.x+0.5, c.width-1
	case c.width < 1:
		c.width = 1
	}
	if weighed {
		c.known, c.most = max(0, cell.Level), max(0, cell.Level)
		return c
	}
	c.known = total(cell.Admitted...)
	c.most = total(c.known, cell.Unknown)
	return c
}

// ceilings draws what each cell admitted, against the limit.
func ceilings(lay layout, r Run, l Limit) (chart markup, thinned bool) {
	d := drawing{plot: plot{layout: lay, top: nameLane + 2, height: 190, length: r.Length}}
	list, thinned := d.columns(l.Cells, l.weighed())
	top := float64(total(l.bound(), l.Allowed))
	for _, c := range list {
		top = max(top, float64(c.most))
	}
	d.max = top * 1.08
	d.shade(r.Bands)
	d.amounts(d.max, 5, true)
	marginal := d.stack(r, l, list)
	d.excess(l, list)
	marginal = append(marginal, d.limitLines(l)...)
	if lay.tips {
		for _, c := range list {
			d.tip(c.x, c.width, c.words(r, l))
		}
	}
	d.times()
	d.labels(marginal)
	return d.svg(fmt.Sprintf("%s At most %s, on a limit of %s.", ceilingTitle(l), count(l.Max),
		count(l.bound()))), thinned
}

// stack draws the columns, by region, or in one colour if they show a level. It returns the labels
// for the parts of the last column.
func (d *drawing) stack(r Run, l Limit, list []column) []label {
	if l.weighed() {
		var data strings.Builder
		for _, c := range list {
			data.WriteString(box(c.x, d.y(float64(c.most)), c.width,
				d.bottom()-d.y(float64(c.most))))
		}
		d.path("level", data.String())
		return nil
	}
	parts := make([]strings.Builder, len(r.Regions))
	var unknown strings.Builder
	for _, c := range list {
		below := 0.0
		for i := range parts {
			n := float64(at(c.cell.Admitted, i))
			parts[i].WriteString(d.part(c.x, c.width, below, below+n))
			below += n
		}
		if n := float64(max(0, c.cell.Unknown)); n > 0 {
			unknown.WriteString(d.part(c.x, c.width, below, below+n))
		}
	}
	for i := range parts {
		d.path(fill(i), parts[i].String())
	}
	d.path("unknown", unknown.String())
	if len(list) == 0 {
		return nil
	}
	return d.regionLabels(r, list[len(list)-1].cell.Admitted, 1)
}

// regionLabels returns labels for the parts of a stack of amounts, each at the part's middle. scale
// is the factor from an amount to the axis.
func (d *drawing) regionLabels(r Run, amounts []int64, scale float64) []label {
	if float64(len(r.Regions)+2)*lineHeight > d.height {
		return nil
	}
	var list []label
	below := 0.0
	for i, region := range r.Regions {
		n := float64(at(amounts, i)) * scale
		// The small term keeps the labels of empty parts in the order of the stack.
		list = append(list, label{y: d.y(below+n/2) - float64(i)*1e-6, text: regionName(region),
			class: "name", swatch: fill(i)})
		below += n
	}
	return list
}

// excess draws what exceeds the ceiling over the columns, solid where it is certain.
func (d *drawing) excess(l Limit, list []column) {
	bound := l.bound()
	line := d.y(float64(bound))
	var certain, doubtful strings.Builder
	for _, c := range list {
		known := d.y(float64(max(bound, c.known)))
		certain.WriteString(box(c.x, known, c.width, line-known))
		if c.most > max(bound, c.known) {
			most := d.y(float64(c.most))
			doubtful.WriteString(box(c.x, most, c.width, known-most))
		}
	}
	d.path("excess", certain.String())
	d.path("doubt", doubtful.String())
}

// limitLines draws the limit, and the printed bound above it.
func (d *drawing) limitLines(l Limit) []label {
	y := d.y(float64(l.bound()))
	d.line("limit", d.left, y, d.end(), y)
	list := []label{{y: y, text: l.kind().bound + " " + short(float64(l.bound())),
		class: "limitname"}}
	if l.Allowed > 0 {
		y := d.y(float64(total(l.bound(), l.Allowed)))
		d.line("allowed", d.left, y, d.end(), y)
		list = append(list, label{y: y, text: "bound +" + short(float64(l.Allowed)), class: "name"})
	}
	return list
}

// words describes the content of a column.
func (c column) words(r Run, l Limit) string {
	lines := []string{between(c.cell.From, c.cell.Length)}
	if l.weighed() {
		lines = append(lines, count(c.most)+" of "+count(l.bound()))
	} else {
		lines = append(lines, fmt.Sprintf("admitted %s of %s", count(c.known), count(l.bound())))
		if c.cell.Unknown > 0 {
			lines = append(lines, "no answer: "+count(c.cell.Unknown))
		}
	}
	for i, region := range r.Regions {
		lines = append(lines, regionName(region)+": "+count(at(c.cell.Admitted, i)))
	}
	if n := over(c.most, l.bound()); n > 0 {
		lines = append(lines, count(n)+" above the limit")
	}
	return strings.Join(lines, "\n")
}

// between describes a stretch of time.
func between(from, length time.Duration) string {
	return span(from) + " to " + span(from+max(0, length))
}

// fill returns the class of a region's colour.
func fill(region int) string { return fmt.Sprintf("r%d", region%colours) }

// colours is the number of colours of the style sheet. Further regions start again with the first.
const colours = 10
