package report

import (
	"cmp"
	"fmt"
	"strconv"
)

// page writes what a page says of a run. It makes the texts of the run visible, and its writer
// escapes them.
type page struct {
	*writer
	run Run
}

func (p page) write() {
	word, _, _ := p.verdict()
	p.add(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s: %s</title>
<style>%s</style>
</head>
<body>
%s<main>
`, word, p.title(), markup(chartStyle+pageStyle), patterns)
	p.header()
	p.expectations()
	p.faults()
	for _, l := range p.run.Limits {
		p.limit(l)
	}
	if len(p.run.Limits) == 0 {
		p.add(`<section><h2>Limits</h2><p class="none">Nothing was recorded of any limit.</p></section>` + "\n")
	}
	p.steps()
	p.command()
	p.add("</main>\n</body>\n</html>\n")
}

func (p page) title() string { return cmp.Or(name(p.run.Title), "Rehearsal") }

// verdict returns the verdict as a word, as a mark, and as the class of both.
func (p page) verdict() (word, mark, state string) {
	if p.run.OK {
		return "Passed", "✓", "good"
	}
	return "Failed", "✗", "bad"
}

func (p page) header() {
	word, mark, state := p.verdict()
	p.add(`<header>
<h1><bdi>%s</bdi></h1>
<div class="verdict %s"><span class="word"><span aria-hidden="true">%s</span> %s</span><span class="sentence"><bdi>%s</bdi></span></div>
`, p.title(), state, mark, word, prose(p.run.Verdict))
	p.maybe(`<p class="about"><bdi>%s</bdi></p>`+"\n", prose(p.run.About))
	p.add(`<p class="meta">`)
	if began := p.run.Began; !began.IsZero() {
		p.add("<span>%s</span>", began.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	p.add("<span>%s</span>", span(p.run.Length))
	p.maybe("<span>quotad <bdi>%s</bdi></span>", name(p.run.Version))
	p.add("<span>seed %s</span></p>\n</header>\n\n", strconv.FormatUint(p.run.Seed, 10))
}

// table begins a table.
func (p page) table(class string, headings ...string) {
	p.add(`<table class="%s">`+"\n<thead><tr>", class)
	for _, h := range headings {
		p.add(`<th scope="col">%s</th>`, h)
	}
	p.add("</tr></thead>\n<tbody>")
}

func (p page) expectations() {
	p.add("<section>\n<h2>Expectations")
	if all := p.run.Expectations; len(all) > 0 {
		met := 0
		for _, e := range all {
			if e.OK {
				met++
			}
		}
		p.add(" <small>%s</small></h2>\n", fmt.Sprintf("%d of %d met", met, len(all)))
		p.table("expectations", "Result", "Expected", "Wanted", "Measured")
		for _, e := range all {
			state, mark := "good", markup("✓ <span>met</span>")
			if !e.OK {
				state, mark = "bad", "✗ <span>not met</span>"
			}
			p.add("\n"+`<tr class="%s"><td class="mark">%s</td><td><bdi>%s</bdi></td><td data-name="wanted"><bdi>%s</bdi></td><td data-name="measured"><b><bdi>%s</bdi></b></td></tr>`,
				state, mark, prose(e.Text), prose(e.Want), prose(e.Got))
		}
		p.add("\n</tbody></table>\n")
	} else {
		p.add("</h2>\n" + `<p class="none">None were stated: this run only recorded.</p>` + "\n")
	}
	for _, n := range p.run.Notes {
		p.add(`<p class="note"><bdi>%s</bdi></p>`+"\n", prose(n))
	}
	p.add("</section>\n\n")
}

func (p page) faults() {
	r := p.run
	if len(r.Bands) == 0 || r.Length <= 0 {
		return
	}
	p.add("<section>\n<h2>What was broken, and when</h2>\n<figure>%s%s</figure>\n",
		faults(wide.holding(r.Regions), r), faults(narrow.holding(r.Regions), r))
	for _, f := range explained(r) {
		p.add(`<p class="note"><b><bdi>%s</bdi></b>: <bdi>%s</bdi></p>`+"\n", f.Name, f.Value)
	}
	p.add("</section>\n\n")
}

func (p page) steps() {
	all := steps(p.run)
	if len(all) == 0 {
		return
	}
	p.add("<section>\n<h2>Steps</h2>\n")
	p.table("steps", "At", "What was done")
	for _, s := range all {
		p.add("\n<tr><td>%s</td><td><bdi>%s</bdi>", span(s.At), s.Text)
		p.maybe(` <span class="outcome"><bdi>%s</bdi></span>`, s.Outcome)
		p.add("</td></tr>")
	}
	p.add("\n</tbody></table>\n</section>\n")
}

func (p page) command() {
	if p.run.Command == "" && len(p.run.Facts) == 0 {
		return
	}
	p.add("<section>\n<h2>How it was run</h2>\n")
	p.maybe("<pre><bdi>%s</bdi></pre>\n", visible(p.run.Command, longestProse))
	if len(p.run.Facts) > 0 {
		p.add(`<dl class="facts">`)
		for _, f := range p.run.Facts {
			p.add("<div><dt><bdi>%s</bdi></dt><dd><bdi>%s</bdi></dd></div>", name(f.Name), prose(f.Value))
		}
		p.add("</dl>\n")
	}
	p.add("</section>\n")
}
