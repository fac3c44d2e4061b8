package report

// html returns the page.
func (p page) html() string {
	w := &writer{}
	w.add(`<!DOCTYPE html>
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
`, p.Word, p.Title, markup(chartStyle+pageStyle), patterns)
	p.header(w)
	p.expectations(w)
	p.faults(w)
	for _, s := range p.Limits {
		s.html(w)
	}
	if len(p.Limits) == 0 {
		w.add(`<section><h2>Limits</h2><p class="none">Nothing was recorded of any limit.</p></section>` + "\n")
	}
	p.steps(w)
	p.command(w)
	w.add("</main>\n</body>\n</html>\n")
	return w.String()
}

func (p page) header(w *writer) {
	w.add(`<header>
<h1><bdi>%s</bdi></h1>
<div class="verdict %s"><span class="word"><span aria-hidden="true">%s</span> %s</span><span class="sentence"><bdi>%s</bdi></span></div>
`, p.Title, p.State, p.Mark, p.Word, p.Verdict)
	w.maybe(`<p class="about"><bdi>%s</bdi></p>`+"\n", p.About)
	w.add(`<p class="meta">`)
	w.maybe("<span>%s</span>", p.Began)
	w.add("<span>%s</span>", p.Length)
	w.maybe("<span>quotad <bdi>%s</bdi></span>", p.Version)
	w.add("<span>seed %s</span></p>\n</header>\n\n", p.Seed)
}

func (p page) expectations(w *writer) {
	w.add("<section>\n<h2>Expectations")
	if len(p.Expectations) > 0 {
		w.add(` <small>%s</small></h2>
<table class="expectations">
<thead><tr><th scope="col">Result</th><th scope="col">Expected</th><th scope="col">Wanted</th><th scope="col">Measured</th></tr></thead>
<tbody>`, p.Met)
		for _, e := range p.Expectations {
			state, mark := "good", markup("✓ <span>met</span>")
			if !e.OK {
				state, mark = "bad", "✗ <span>not met</span>"
			}
			w.add("\n"+`<tr class="%s"><td class="mark">%s</td><td><bdi>%s</bdi></td><td data-name="wanted"><bdi>%s</bdi></td><td data-name="measured"><b><bdi>%s</bdi></b></td></tr>`,
				state, mark, e.Text, e.Want, e.Got)
		}
		w.add("\n</tbody></table>\n")
	} else {
		w.add("</h2>\n" + `<p class="none">None were stated: this run only recorded.</p>` + "\n")
	}
	for _, n := range p.Notes {
		w.add(`<p class="note"><bdi>%s</bdi></p>`+"\n", n)
	}
	w.add("</section>\n\n")
}

func (p page) faults(w *writer) {
	if p.Faults == nil {
		return
	}
	w.add("<section>\n<h2>%s</h2>\n<figure>%s%s</figure>\n", p.Faults.Title, p.Faults.Wide, p.Faults.Narrow)
	for _, f := range p.Explained {
		w.add(`<p class="note"><b><bdi>%s</bdi></b>: <bdi>%s</bdi></p>`+"\n", f.Name, f.Value)
	}
	w.add("</section>\n\n")
}

// html writes what the page says of one limit.
func (s section) html(w *writer) {
	w.add("<section>\n<h2>Limit <bdi>%s</bdi> <small>%s, <bdi>%s</bdi>", s.Name, s.Terms, s.Algorithm)
	w.maybe(", key <code><bdi>%s</bdi></code>", s.Key)
	w.add("</small></h2>\n")
	if s.Empty {
		w.add(`<p class="none">Nothing was recorded of this limit.</p></section>` + "\n")
		return
	}
	w.add(`<dl class="tiles">`)
	for _, t := range s.Tiles {
		w.add("\n"+`<div class="%s"><dt>%s</dt><dd><b>%s</b> <span>%s</span></dd></div>`, t.State, t.Name, t.Value, t.Note)
	}
	w.add("\n</dl>\n")
	w.maybe(`<p class="note">Printed bound: <bdi>%s</bdi></p>`+"\n", s.Allowance)
	for _, f := range s.Figures {
		f.html(w)
	}
	if len(s.Regions) > 0 {
		s.regions(w)
	}
	if len(s.Fullest) > 0 {
		s.fullest(w)
	}
	w.add("</section>\n")
}

func (f figure) html(w *writer) {
	w.add("<figure>\n<figcaption><b>%s</b> %s", f.Title, f.Note)
	w.maybe(` <span class="wide">%s</span>`, f.WideNote)
	w.maybe(` <span class="narrow">%s</span>`, f.NarrowNote)
	w.add("</figcaption>\n%s%s\n</figure>\n", f.Wide, f.Narrow)
}

func (s section) regions(w *writer) {
	w.add(`<h3>By region</h3>
<div class="scroll"><table class="figures">
<thead><tr><th scope="col">Region</th><th scope="col">Offered</th><th scope="col">Admitted</th><th scope="col">Part</th><th scope="col">Denied</th><th scope="col">No answer</th></tr></thead>
<tbody>`)
	for _, r := range s.Regions {
		w.add("\n<tr")
		if r.Total {
			w.add(` class="total"`)
		}
		w.add(">")
		for i, cell := range r.Cells {
			w.add("<td>")
			if i == 0 {
				w.maybe(`<i class="swatch %s"></i>`, r.Swatch)
			}
			w.add("<bdi>%s</bdi></td>", cell)
		}
		w.add("</tr>")
	}
	w.add("\n</tbody></table></div>\n")
}

func (s section) fullest(w *writer) {
	w.add(`<h3>%s</h3>
<div class="scroll"><table class="figures">
<thead><tr><th scope="col">From, to</th><th scope="col">Came to</th><th scope="col">Of limit</th><th scope="col">No answer</th><th scope="col">Above</th></tr></thead>
<tbody>`, s.FullestTitle)
	for _, r := range s.Fullest {
		w.add("\n<tr>")
		for _, cell := range r.Cells {
			w.add("<td>%s</td>", cell)
		}
		w.add("</tr>")
	}
	w.add("\n</tbody></table></div>\n")
}

func (p page) steps(w *writer) {
	if len(p.Steps) == 0 {
		return
	}
	w.add(`<section>
<h2>Steps</h2>
<table class="steps">
<thead><tr><th scope="col">At</th><th scope="col">What was done</th></tr></thead>
<tbody>`)
	for _, r := range p.Steps {
		w.add("\n<tr><td>%s</td><td><bdi>%s</bdi>", r.Cells[0], r.Cells[1])
		w.maybe(` <span class="outcome"><bdi>%s</bdi></span>`, r.Cells[2])
		w.add("</td></tr>")
	}
	w.add("\n</tbody></table>\n</section>\n")
}

func (p page) command(w *writer) {
	if p.Command == "" && len(p.Facts) == 0 {
		return
	}
	w.add("<section>\n<h2>How it was run</h2>\n")
	w.maybe("<pre><bdi>%s</bdi></pre>\n", p.Command)
	if len(p.Facts) > 0 {
		w.add(`<dl class="facts">`)
		for _, f := range p.Facts {
			w.add("<div><dt><bdi>%s</bdi></dt><dd><bdi>%s</bdi></dd></div>", f.Name, f.Value)
		}
		w.add("</dl>\n")
	}
	w.add("</section>\n")
}
