package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// page is what a page says. All its texts are ready for display, and are escaped where they are written.
type page struct {
	Title, About, Command, Verdict string
	Word, Mark, State              string // of the verdict: "Passed", "✓", "good"
	Began, Length, Seed, Version   string
	Met                            string // "6 of 7 met"
	Expectations                   []Expectation
	Faults                         *figure
	Explained                      []Fact // faults with their explanations
	Steps                          []row
	Limits                         []section
	Notes                          []string
	Facts                          []Fact
}

// figure is a chart in both widths.
type figure struct {
	Title, Note          string
	Wide, Narrow         markup
	WideNote, NarrowNote string
}

// row is a row of a table.
type row struct {
	Swatch string
	Cells  []string
	Total  bool
}

// tile is a single number with its name.
type tile struct{ Name, Value, Note, State string }

// section is what the page says of one limit.
type section struct {
	Name, Key, Terms, Algorithm string
	Tiles                       []tile
	Figures                     []figure
	Regions                     []row
	Fullest                     []row
	FullestTitle                string
	Allowance                   string
	Empty                       bool
}

func newPage(r Run) page {
	p := page{
		Title: name(r.Title), About: prose(r.About), Command: visible(r.Command, longestProse),
		Verdict: prose(r.Verdict),
		Word:    "Failed", Mark: "✗", State: "bad",
		Length: span(r.Length), Seed: strconv.FormatUint(r.Seed, 10), Version: name(r.Version),
	}
	if p.Title == "" {
		p.Title = "Rehearsal"
	}
	if r.OK {
		p.Word, p.Mark, p.State = "Passed", "✓", "good"
	}
	if !r.Began.IsZero() {
		p.Began = r.Began.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	met := 0
	for _, e := range r.Expectations {
		p.Expectations = append(p.Expectations, Expectation{prose(e.Text), prose(e.Want),
			prose(e.Got), e.OK})
		if e.OK {
			met++
		}
	}
	p.Met = fmt.Sprintf("%d of %d met", met, len(r.Expectations))
	if len(r.Bands) > 0 && r.Length > 0 {
		p.Faults = &figure{Title: "What was broken, and when", Wide: faults(wide.holding(r.Regions),
			r), Narrow: faults(narrow.holding(r.Regions), r)}
	}
	p.Explained = explained(r)
	for _, s := range steps(r) {
		p.Steps = append(p.Steps, row{Cells: []string{span(s.At), s.Text, s.Outcome}})
	}
	for _, l := range r.Limits {
		p.Limits = append(p.Limits, newSection(r, l))
	}
	for _, n := range r.Notes {
		p.Notes = append(p.Notes, prose(n))
	}
	for _, f := range r.Facts {
		p.Facts = append(p.Facts, Fact{name(f.Name), prose(f.Value)})
	}
	return p
}

func newSection(r Run, l Limit) section {
	s := section{
		Name: name(l.Name), Key: name(l.Key), Terms: l.terms(), Algorithm: name(l.Algorithm),
		Tiles: tiles(l), Allowance: prose(l.Allowance),
		Empty: len(l.Cells)+len(l.Slots)+len(l.Shares) == 0,
	}
	if r.Length > 0 && len(l.Cells) > 0 {
		s.Figures = append(s.Figures, ceilingFigure(r, l))
	}
	if r.Length > 0 && len(l.Slots) > 0 {
		s.Figures = append(s.Figures, flowFigure(r, l))
	}
	if r.Length > 0 && len(l.Shares) > 0 {
		s.Figures = append(s.Figures, figure{
			Title: "Share of each region",
			Note:  "Line: the units a region may admit. Dashed: its fixed split. Striped: degraded, out of touch with another region.",
			Wide:  shares(wide.holding(r.Regions), r, l), Narrow: shares(narrow.holding(r.Regions),
				r, l),
		})
	}
	if len(l.Slots) > 0 {
		s.Regions = regionRows(r, l)
	}
	if len(l.Cells) > 1 {
		s.FullestTitle = "The fullest of " + count(int64(len(l.Cells))) + " " + l.kind().cells
		s.Fullest = fullest(l)
	}
	return s
}

func ceilingFigure(r Run, l Limit) figure {
	f := figure{Title: l.kind().ceiling}
	var thinWide, thinNarrow bool
	f.Wide, thinWide = ceilings(wide.holding(r.Regions), r, l)
	f.Narrow, thinNarrow = ceilings(narrow.holding(r.Regions), r, l)
	thinned := "There are more " + l.kind().cells +
		" than columns: each column shows the one that came to the most."
	if thinWide {
		f.WideNote = thinned
	}
	if thinNarrow {
		f.NarrowNote = thinned
	}
	if l.weighed() {
		f.Note = "Unknown outcomes count as admitted."
	} else {
		f.Note = "Hatched: no answer, or no store to say in which window: counted in each that it may lie in."
	}
	f.Note += " Red: above the limit."
	if cut := l.outside(r.Length); cut != "" {
		f.Note += " " + cut
	}
	return f
}

// outside says that cells extend beyond the run, if they do.
func (l Limit) outside(length time.Duration) string {
	first, last := l.Cells[0], l.Cells[len(l.Cells)-1]
	before, after := -first.From, last.From+last.Length-length
	switch {
	case before > 0 && after > 0:
		return fmt.Sprintf("The first began %s before the run, the last ends %s after it.",
			span(before), span(after))
	case before > 0:
		return fmt.Sprintf("The first began %s before the run.", span(before))
	case after > 0:
		return fmt.Sprintf("The last ends %s after the run.", span(after))
	}
	return ""
}

func flowFigure(r Run, l Limit) figure {
	f := figure{Title: "Offered and admitted, units a second",
		Note: "Line: offered. Colours: admitted, by region. Between them: denied. Hatched: no answer."}
	var mergedWide, mergedNarrow int
	f.Wide, mergedWide = flow(wide.holding(r.Regions), r, l)
	f.Narrow, mergedNarrow = flow(narrow.holding(r.Regions), r, l)
	f.WideNote, f.NarrowNote = averaged(l, mergedWide), averaged(l, mergedNarrow)
	return f
}

func averaged(l Limit, merged int) string {
	if merged < 2 {
		return ""
	}
	return "Each column is the mean of " + span(time.Duration(merged)*l.Slots[0].Length) + "."
}

// tiles returns the numbers to show at the top of a limit's section.
func tiles(l Limit) []tile {
	var offered, admitted, unknown int64
	for _, s := range l.Slots {
		offered = total(offered, total(s.Offered...))
		admitted = total(admitted, total(s.Admitted...))
		unknown = total(unknown, total(s.Unknown...))
	}
	list := []tile{{Name: l.kind().tallest, Value: count(l.Max), Note: "of " + count(l.bound()) +
		", " + percent(l.Max, l.bound())}}
	excess := tile{Name: "Above the limit", Value: count(l.Excess), Note: "none is allowed"}
	if l.Allowed > 0 {
		excess.Note = "printed bound " + count(l.Allowed)
	}
	switch {
	case l.Excess > l.Allowed:
		excess.State = "bad"
	case l.Excess <= 0:
		excess.State = "good"
	}
	list = append(list, excess)
	if len(l.Slots) > 0 {
		t := tile{Name: "Admitted", Value: count(admitted), Note: "of " + count(offered) +
			" offered, " + percent(admitted, offered)}
		if unknown > 0 {
			t.Note += "; " + count(unknown) + " unanswered"
		}
		list = append(list, t)
	}
	if l.Pooled > 0 {
		list = append(list, tile{Name: "False denials", Value: percent(l.FalseDenials, l.Pooled),
			Note: count(l.FalseDenials) + " of " + count(l.Pooled) +
				" that one limiter for all would admit"})
	}
	return list
}

// regionRows returns the sums of the run by region.
func regionRows(r Run, l Limit) []row {
	var all Slot
	for _, s := range l.Slots {
		all = all.plus(s)
	}
	line := func(region string, swatch string, offered, admitted, denied, unknown int64,
		sum bool) row {
		return row{Swatch: swatch, Total: sum,
			Cells: []string{region, count(offered), count(admitted), percent(admitted, offered),
				count(denied), count(unknown)}}
	}
	var rows []row
	for i, region := range r.Regions {
		rows = append(rows, line(regionName(region), fill(i), at(all.Offered, i),
			at(all.Admitted, i), at(all.Denied, i), at(all.Unknown, i), false))
	}
	return append(rows, line("all", "", total(all.Offered...), total(all.Admitted...),
		total(all.Denied...), total(all.Unknown...), true))
}

// fullest returns the cells that admitted most, or had the highest level.
func fullest(l Limit) []row {
	weighed := l.weighed()
	most := func(c Cell) int64 {
		if weighed {
			return max(0, c.Level)
		}
		return total(total(c.Admitted...), c.Unknown)
	}
	cells := slices.Clone(l.Cells)
	slices.SortStableFunc(cells, func(a, b Cell) int { return cmp.Compare(most(b), most(a)) })
	var rows []row
	for _, c := range cells[:min(3, len(cells))] {
		above := "–"
		if n := over(most(c), l.bound()); n > 0 {
			above = count(n)
		}
		rows = append(rows, row{Cells: []string{between(c.From, c.Length), count(most(c)),
			percent(most(c), l.bound()), count(max(0, c.Unknown)), above}})
	}
	return rows
}
