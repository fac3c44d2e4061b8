package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
)

// degraded requires it of every decision of the named region, since each of its nodes must notice.
// If no region is named, one decision is enough.
func (s *Scenario) degraded(r *Record, e Expectation) Result {
	seen, all := r.outOfTouch(e)
	out := Result{Text: "some region says that another is out of touch" + e.span(s.Duration),
		Want: "at least 1 decision",
		Got:  fmt.Sprintf("%d of %d decisions", seen, all), OK: seen > 0}
	if e.Region != "" {
		out.Text = e.Region + " says that another region is out of touch" + e.span(s.Duration)
		out.Want, out.OK = "every decision", seen > 0 && seen == all
	}
	return out
}

// inTouch is not met if a region decides nothing.
func (s *Scenario) inTouch(r *Record, e Expectation) Result {
	seen, all := r.outOfTouch(e)
	text := "no region is out of touch"
	if e.Region != "" {
		text = e.Region + " is in touch with all regions"
	}
	out := Result{Text: text + e.span(s.Duration), Want: "no decision that says otherwise",
		Got: fmt.Sprintf("%d of %d decisions", seen, all), OK: seen == 0 && all > 0}
	for _, region := range s.regionNames() {
		e.Region = region
		if _, some := r.outOfTouch(e); some == 0 && s.loaded(e) {
			out.Got, out.OK = out.Got+", none in "+region, false
		}
	}
	return out
}

// loaded reports whether a region is offered load in all of a span.
func (s *Scenario) loaded(e Expectation) bool {
	return slices.ContainsFunc(s.Load, func(l Load) bool {
		changed := slices.ContainsFunc(s.Steps,
			func(step Step) bool { return step.Do == "load" && step.changes(l) })
		return len(l.Envoys) == 0 && l.Region == e.Region && l.Rate > 0 && !changed && l.From < e.To && l.To > e.From
	})
}

// outOfTouch counts the decisions that say that a region is out of touch, and all decisions. One that
// came after the span's end says how it was then.
func (r *Record) outOfTouch(e Expectation) (seen, all int) {
	for _, a := range r.Answers {
		if !e.in(r, a) || !decided(a) || byEnvoy(a) || a.Seen.Sub(r.Began) > e.To {
			continue
		}
		all++
		if a.Degraded {
			seen++
		}
	}
	return seen, all
}

// borrows looks for the first admission by a region whose share was above its entitlement.
func (s *Scenario) borrows(r *Record, e Expectation) Result {
	b := e.buckets(s.Watched())[0]
	out := Result{Text: fmt.Sprintf("%s admits with borrowed rights of %s after %s", e.Region,
		b.Name(), e.After), Want: "within " + e.Within.String(), Got: "never"}
	for _, a := range r.of(b.Name()) {
		if a.Region == e.Region && a.Outcome == oracle.Admitted && a.Share > a.Entitlement &&
			r.sent(a) >= e.After {
			took := a.Seen.Sub(r.Began) - e.After
			out.Got, out.OK = "after "+round(took), took <= e.Within
			return out
		}
	}
	return out
}

// answers checks how long decisions took. A request without an answer took too long.
func (s *Scenario) answers(r *Record, e Expectation) Result {
	percent := int64(100)
	if e.Percent > 0 {
		percent = e.Percent
	}
	text := "requests are decided in time"
	if percent < 100 {
		text = fmt.Sprintf("%d%% of requests are decided in time", percent)
	}
	if e.Region != "" {
		text += " in " + e.Region
	}
	out := Result{Text: text + e.span(s.Duration), Want: e.Within.String()}
	var took []time.Duration
	unanswered := 0
	for _, a := range r.Answers {
		switch {
		case !e.in(r, a) || byEnvoy(a):
		case decided(a):
			took = append(took, a.Seen.Sub(a.Sent))
		default:
			unanswered++
		}
	}
	all := len(took) + unanswered
	if all == 0 {
		out.Got = "nothing was asked for"
		return out
	}
	slices.Sort(took)
	at := int((int64(all)*percent+99)/100) - 1
	if at >= len(took) {
		out.Got = fmt.Sprintf("no answer to %d of %d", unanswered, all)
		return out
	}
	out.Got, out.OK = fmt.Sprintf("%s of %d", round(took[at]), all), took[at] <= e.Within
	if percent < 100 {
		out.Got += ", the longest " + round(took[len(took)-1])
	}
	if unanswered > 0 {
		out.Got += fmt.Sprintf(", no answer to %d", unanswered)
	}
	return out
}

// ready checks when nodes first reported that they were ready.
func (s *Scenario) ready(r *Record, e Expectation) Result {
	who := e.Region
	first, last := 1, s.region(e.Region).Nodes
	if e.Node > 0 {
		first, last = e.Node, e.Node
		who = fmt.Sprintf("%s/n%d", e.Region, e.Node)
	}
	out := Result{Text: fmt.Sprintf("%s may be sent requests again after %s", who, e.After),
		Want: "within " + e.Within.String(), OK: true}
	longest := time.Duration(0)
	for node := first; node <= last; node++ {
		at, so := r.readyFrom(e.Region, node, e.After)
		if !so {
			out.Got, out.OK = fmt.Sprintf("n%d never", node), false
			return out
		}
		longest = max(longest, at-e.After)
	}
	out.Got = "after " + round(longest)
	out.OK = longest <= e.Within
	return out
}

// readyFrom returns when a node was first ready at or after a time.
func (r *Record) readyFrom(region string, node int, after time.Duration) (time.Duration, bool) {
	before := false
	for _, h := range r.Health {
		if h.Region != region || h.Node != node {
			continue
		}
		at := h.At.Sub(r.Began)
		switch {
		case at <= after:
			before = h.Ready
		case before:
			return after, true
		case h.Ready:
			return at, true
		}
	}
	return after, before
}

func (s *Scenario) alive(r *Record, _ Expectation) Result {
	out := Result{Text: "no node ended but where a step ended it", Want: "none", OK: true}
	if len(r.Health) == 0 {
		out.Got, out.OK = "nobody looked", false
		return out
	}
	ends := 0
	for _, h := range r.Health {
		if h.Ended {
			ends++
			out.OK = false
			out.Got += fmt.Sprintf("; %s/n%d at %s: %s", h.Region, h.Node, round(h.At.Sub(r.Began)),
				h.Why)
		}
	}
	out.Got = counted(ends, "end") + out.Got
	return out
}

// round formats a duration for humans.
func round(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}
