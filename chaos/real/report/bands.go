package report

import (
	"cmp"
	"fmt"
	"slices"
)

// The height of a row of the faults' chart and the maximum number of rows, and the height of the
// lane above a chart's plot that contains the names of bands.
const (
	bandRow  = 31.0
	maxRows  = 12
	nameLane = 18.0
)

// shade draws the faults behind a chart, and their names in the lane above it. It must be called
// before the rest is drawn. A band's name is drawn only where nobody could take it for another
// band's.
func (d *drawing) shade(bands []Band) {
	top, taken := d.top-nameLane, 0.0
	for i, b := range bands {
		if !d.shows(b) {
			continue
		}
		x, to := d.x(b.From), d.x(b.To)
		if b.To <= b.From {
			d.line("moment", x, top, x, d.bottom())
		} else {
			d.rect("band", x, top, max(to-x, 1), d.bottom()-top)
		}
		text := name(b.Name)
		if end := x + 4 + textWidth(text); x >= taken && d.alone(bands, i, end) {
			d.text("bandname", x+4, top+13, text)
			taken = end + 6
		}
	}
}

// alone reports whether the name of band i, which reaches to end, overlaps no other band. Two
// overlaps are allowed: an instant at the beginning of band i, and a band that encloses the whole
// name.
func (d *drawing) alone(bands []Band, i int, end float64) bool {
	x, to := d.x(bands[i].From), d.x(bands[i].To)
	for j, o := range bands {
		begins, ends := d.x(o.From), d.x(max(o.From, o.To))
		switch {
		case j == i || !d.shows(o) || begins >= end || ends < x:
		case begins < x && end <= to, begins == x && ends == x:
		default:
			return false
		}
	}
	return end <= d.width
}

// shows reports whether any part of a band lies within the run.
func (d *drawing) shows(b Band) bool {
	return d.length > 0 && b.From <= d.length && max(b.To, b.From) >= 0
}

// faults draws the chart of the bands alone, with one row for each name.
func faults(l layout, r Run) markup {
	var rows []string
	for _, b := range r.Bands {
		if !slices.Contains(rows, b.Name) {
			rows = append(rows, b.Name)
		}
	}
	shown := rows[:min(len(rows), maxRows)]
	d := drawing{plot: plot{layout: l, top: 4, height: bandRow*float64(len(shown)) + 4,
		length: r.Length}}
	for i, row := range shown {
		d.faultRow(r.Bands, row, d.top+bandRow*float64(i))
	}
	d.times()
	return d.svg(fmt.Sprintf("Faults over time: %d stretches or instants of %d kinds.",
		len(r.Bands), len(rows)))
}

// faultRow draws the bands with one name, and the name above the first.
func (d *drawing) faultRow(bands []Band, row string, y float64) {
	bands = slices.DeleteFunc(slices.Clone(bands),
		func(b Band) bool { return b.Name != row || !d.shows(b) })
	for i, b := range bands {
		x, to := d.x(b.From), d.x(b.To)
		if i == 0 {
			text := fit(rowName(bands), d.width-d.left)
			d.text("fault", min(x, max(d.left, d.width-textWidth(text))), y+13, text)
		}
		if b.To <= b.From {
			d.path("faultbar", "M"+px(x)+" "+px(y+17)+"l5 9h-10z")
			continue
		}
		d.rect("faultbar", x, y+18, max(to-x, 1.5), 8)
	}
}

// rowName returns the text above the bands with one name.
func rowName(bands []Band) string {
	b := bands[0]
	switch {
	case len(bands) > 1:
		return fmt.Sprintf("%s, %d times", name(b.Name), len(bands))
	case b.To > b.From:
		return name(b.Name) + ", " + stretch(b)
	}
	return name(b.Name)
}

// explained returns the faults that have an explanation, each once. If there are no steps, the list
// of bands already has the explanations.
func explained(r Run) []Fact {
	var list []Fact
	for _, b := range r.Bands {
		f := Fact{name(b.Name), prose(b.About)}
		if len(r.Steps) > 0 && f.Value != "" && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// stretch describes the length of a band.
func stretch(b Band) string { return "for " + span(b.To-b.From) }

// steps lists the steps; if there are none, it lists the bands.
func steps(r Run) []Step {
	list := slices.Clone(r.Steps)
	if len(list) == 0 {
		for _, b := range r.Bands {
			s := Step{At: b.From, Text: b.Name, Outcome: b.About}
			if b.To > b.From {
				s.Text += ", " + stretch(b)
			}
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	for i, s := range list {
		list[i] = Step{At: s.At, Text: prose(s.Text), Outcome: prose(s.Outcome)}
	}
	return list
}
