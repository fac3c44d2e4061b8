package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/quotad/quotad/chaos/world"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// screen shows a demo: on a terminal it redraws in place, elsewhere it prints plain lines.
type screen struct {
	out   io.Writer
	story world.Story
	live  bool
	drawn int // lines to move back up
	phase string
}

func newScreen(out io.Writer, story world.Story) *screen {
	return &screen{out: out, story: story, live: show.IsTerminal(out)}
}

func (s *screen) begin(redis string) {
	fmt.Fprintf(s.out, "quotad demo: three regions in this process, each with a Redis of its own (%s); %s round trip between them; %s; %s; seed %d\n",
		redis, s.story.RoundTrip, s.story.Algorithm, s.story.Duration, s.story.Seed)
	fmt.Fprintf(s.out, "Not for production: nothing here is kept.\n\n")
}

// tells says what each phase shows.
var tells = map[string]string{
	"steady":    "demand fits the fixed split",
	"skew":      "us-east wants more than its split and borrows what the others leave",
	"partition": "us-east is cut off: it falls to its fixed split by itself",
	"flood":     "everybody wants more, us-east still cut off: the total stays at the limit",
	"heal":      "the cut is over: shares flow back",
}

// show shows one second.
func (s *screen) show(p world.Progress) {
	if s.live {
		s.draw(p)
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
		degraded := ""
		if r.Degraded {
			degraded = " degraded"
		}
		fmt.Fprintf(s.out, " %s %d/%d of share %d%s |", r.Name, r.Admitted, r.Offered, r.Share,
			degraded)
	}
	fmt.Fprintf(s.out, " total %d of %d\n", total, p.Limit)
}

const barWidth = 40

// draw redraws the table with the last second.
func (s *screen) draw(p world.Progress) {
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	line := func(format string, args ...any) { fmt.Fprintf(&b, "\x1b[2K"+format+"\n", args...) }
	line("%4.0fs  %s: %s", p.Elapsed.Seconds(), p.Phase, tells[p.Phase])
	line("")
	line("  %-10s %8s %8s %8s %12s", "region", "offered", "admitted", "share", "fixed split")
	var total int64
	for _, r := range p.Regions {
		total += r.Admitted
		state := ""
		if r.Degraded {
			state = paint("33", "degraded")
		}
		line("  %-10s %8d %8d %8d %12d  %s", r.Name, r.Offered, r.Admitted, r.Share, r.Entitlement,
			state)
	}
	filled := int(min(total*barWidth/max(p.Limit, 1), barWidth))
	line("")
	line("  total %5d of %d  [%s%s]", total, p.Limit, strings.Repeat("#", filled),
		strings.Repeat(".", barWidth-filled))
	text := b.String()
	s.drawn = strings.Count(text, "\n")
	fmt.Fprint(s.out, text)
}

// end prints the report.
func (s *screen) end(r world.Report) {
	fmt.Fprintf(s.out, "\n%-10s %4s  %-24s %-24s %-18s %9s %9s  %s\n", "phase", "s",
		"offered us/eu/ap", "admitted us/eu/ap", "share at end", "rebalance", "false", "degraded")
	for _, p := range r.Phases {
		rebalance := "-"
		if p.RebalanceMS != nil {
			rebalance = fmt.Sprintf("%.0f ms", *p.RebalanceMS)
		}
		var degraded []string
		for _, region := range r.Regions {
			if p.Degraded[region.Name] > 0 {
				degraded = append(degraded, region.Name)
			}
		}
		fmt.Fprintf(s.out, "%-10s %4.0f  %-24s %-24s %-18s %9s %8.2f%%  %s\n", p.Name, p.Seconds,
			row(r, p.Offered), row(r, p.Admitted),
			row(r, p.ShareEnd), rebalance, 100*p.FalseDenialRate, strings.Join(degraded, " "))
	}
	c := r.Ceiling
	fmt.Fprintf(s.out, "\nceiling: %d cells checked, at most %d admitted of %d, excess %d\n",
		c.CellsChecked, c.MaxAdmitted, c.Limit, c.MaxExcess)
	for _, f := range r.Failures {
		fmt.Fprintf(s.out, "broken: %s\n", f)
	}
	if r.OK {
		fmt.Fprintln(s.out, paintOn(s.live, "32", "ok")+
			": the ceiling held, the cut region fell to its fixed split, shares came back")
	} else {
		fmt.Fprintln(s.out, paintOn(s.live, "31", "NOT OK"))
	}
}

// row returns one number for each region, in order.
func row(r world.Report, units map[string]int64) string {
	parts := make([]string, len(r.Regions))
	for i, region := range r.Regions {
		parts[i] = fmt.Sprint(units[region.Name])
	}
	return strings.Join(parts, "/")
}

func paint(code, text string) string {
	if !show.Colour() {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func paintOn(terminal bool, code, text string) string {
	if !terminal {
		return text
	}
	return paint(code, text)
}
