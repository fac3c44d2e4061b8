package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// limit writes the section about one limit.
func (p page) limit(l Limit) {
	p.add("<section>\n<h2>Limit <bdi>%s</bdi> <small>%s, <bdi>%s</bdi>", name(l.Name), l.terms(),
		name(l.Algorithm))
	p.maybe(", key <code><bdi>%s</bdi></code>", name(l.Key))
	p.add("</small></h2>\n")
	if len(l.Cells)+len(l.Slots)+len(l.Shares) == 0 {
		p.add(`<p class="none">Nothing was recorded of this limit.</p></section>` + "\n")
		return
	}
	p.tiles(l)
	p.maybe(`<p class="note">Printed bound: <bdi>%s</bdi></p>`+"\n", prose(l.Allowance))
	if p.run.Length > 0 {
		p.figures(l)
	}
	if len(l.Slots) > 0 {
		p.regions(l)
	}
	if len(l.Cells) > 1 {
		p.fullest(l)
	}
	p.add("</section>\n")
}

// tiles writes the numbers at the top of a limit's section.
func (p page) tiles(l Limit) {
	tile := func(name, value, note, state string) {
		p.add("\n"+`<div class="%s"><dt>%s</dt><dd><b>%s</b> <span>%s</span></dd></div>`, state, name, value, note)
	}
	p.add(`<dl class="tiles">`)
	tile(l.kind().tallest, count(l.Max), "of "+count(l.bound())+", "+percent(l.Max, l.bound()), "")
	note, state := "none is allowed", ""
	if l.Allowed > 0 {
		note = "printed bound " + count(l.Allowed)
	}
	switch {
	case l.Excess > l.Allowed:
		state = "bad"
	case l.Excess <= 0:
		state = "good"
	}
	tile("Above the limit", count(l.Excess), note, state)
	if len(l.Slots) > 0 {
		var offered, admitted, unknown int64
		for _, s := range l.Slots {
			offered = total(offered, total(s.Offered...))
			admitted = total(admitted, total(s.Admitted...))
			unknown = total(unknown, total(s.Unknown...))
		}
		note := "of " + count(offered) + " offered, " + percent(admitted, offered)
		if unknown > 0 {
			note += "; " + count(unknown) + " unanswered"
		}
		tile("Admitted", count(admitted), note, "")
	}
	if l.Pooled > 0 {
		tile("False denials", percent(l.FalseDenials, l.Pooled), count(l.FalseDenials)+" of "+
			count(l.Pooled)+" that one limiter for all would admit", "")
	}
	p.add("\n</dl>\n")
}

// figure writes a chart in both widths. draw returns it in one of them, and what is to be said of it
// in that width alone.
func (p page) figure(title, note string, draw func(layout) (markup, string)) {
	big, ofBig := draw(wide.holding(p.run.Regions))
	small, ofSmall := draw(narrow.holding(p.run.Regions))
	p.add("<figure>\n<figcaption><b>%s</b> %s", title, note)
	p.maybe(` <span class="wide">%s</span>`, ofBig)
	p.maybe(` <span class="narrow">%s</span>`, ofSmall)
	p.add("</figcaption>\n%s%s\n</figure>\n", big, small)
}

// figures writes the charts of a limit.
func (p page) figures(l Limit) {
	if len(l.Cells) > 0 {
		note := "Hatched: no answer, or no store to say in which window: counted in each that it may lie in."
		if l.weighed() {
			note = "Unknown outcomes count as admitted."
		}
		note += " Red: above the limit."
		if cut := l.outside(p.run.Length); cut != "" {
			note += " " + cut
		}
		p.figure(l.kind().ceiling, note, func(lay layout) (markup, string) {
			chart, thinned := ceilings(lay, p.run, l)
			if !thinned {
				return chart, ""
			}
			return chart, "There are more " + l.kind().cells +
				" than columns: each column shows the one that came to the most."
		})
	}
	if len(l.Slots) > 0 {
		p.figure("Offered and admitted, units a second",
			"Line: offered. Colours: admitted, by region. Between them: denied. Hatched: no answer.",
			func(lay layout) (markup, string) {
				chart, merged := flow(lay, p.run, l)
				if merged < 2 {
					return chart, ""
				}
				return chart, "Each column is the mean of " + span(time.Duration(merged)*l.Slots[0].Length) + "."
			})
	}
	if len(l.Shares) > 0 {
		p.figure("Share of each region",
			"Line: the units a region may admit. Dashed: its fixed split. Striped: degraded, out of touch with another region.",
			func(lay layout) (markup, string) { return shares(lay, p.run, l), "" })
	}
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

// regions writes the sums of the run by region.
func (p page) regions(l Limit) {
	var all Slot
	for _, s := range l.Slots {
		all = all.plus(s)
	}
	p.add("<h3>By region</h3>\n" + `<div class="scroll">`)
	p.table("figures", "Region", "Offered", "Admitted", "Part", "Denied", "No answer")
	cells := func(offered, admitted, denied, unknown int64) {
		for _, cell := range []string{count(offered), count(admitted), percent(admitted, offered),
			count(denied), count(unknown)} {
			p.add("<td><bdi>%s</bdi></td>", cell)
		}
		p.add("</tr>")
	}
	for i, region := range p.run.Regions {
		p.add("\n"+`<tr><td><i class="swatch %s"></i><bdi>%s</bdi></td>`, fill(i), regionName(region))
		cells(at(all.Offered, i), at(all.Admitted, i), at(all.Denied, i), at(all.Unknown, i))
	}
	p.add("\n" + `<tr class="total"><td><bdi>all</bdi></td>`)
	cells(total(all.Offered...), total(all.Admitted...), total(all.Denied...), total(all.Unknown...))
	p.add("\n</tbody></table></div>\n")
}

// fullest writes which cells admitted most, or had the highest level.
func (p page) fullest(l Limit) {
	weighed := l.weighed()
	most := func(c Cell) int64 {
		if weighed {
			return max(0, c.Level)
		}
		return total(total(c.Admitted...), c.Unknown)
	}
	cells := slices.Clone(l.Cells)
	slices.SortStableFunc(cells, func(a, b Cell) int { return cmp.Compare(most(b), most(a)) })
	p.add("<h3>%s</h3>\n"+`<div class="scroll">`,
		"The fullest of "+count(int64(len(cells)))+" "+l.kind().cells)
	p.table("figures", "From, to", "Came to", "Of limit", "No answer", "Above")
	for _, c := range cells[:min(3, len(cells))] {
		above := "–"
		if n := over(most(c), l.bound()); n > 0 {
			above = count(n)
		}
		p.add("\n<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>", between(c.From, c.Length),
			count(most(c)), percent(most(c), l.bound()), count(max(0, c.Unknown)), above)
	}
	p.add("\n</tbody></table></div>\n")
}
