package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/chaos/report"
)

// ends are the words that end what another begins.
var ends = map[string]string{
	"cut": "heal", "delay": "heal", "lose": "heal", "kill": "start", "pause": "continue", "kill-redis": "start-redis",
	"pause-redis": "continue-redis", "fail-disk": "mend-disk",
}

// bands are the stretches of the run in which something was broken.
func (r *Record) bands() (all []report.Band) {
	for i, e := range r.Events {
		if e.Step.Do == "load" || slices.Contains([]string{"heal", "start", "continue", "start-redis", "continue-redis", "mend-disk"}, e.Step.Do) {
			continue
		}
		to := min(e.To, r.Length)
		if end, lasts := ends[e.Step.Do]; lasts && len(e.Step.Points) == 0 {
			to = r.endOf(e, end, r.Events[i:])
		}
		all = append(all, report.Band{From: e.From, To: max(to, e.From), Name: e.Step.Do, About: strings.TrimPrefix(e.Step.String(), e.Step.Do+": ")})
	}
	return all
}

// endOf is when the first step of a word ended what another began.
func (r *Record) endOf(e Event, word string, later []Event) time.Duration {
	for _, x := range later {
		if x.Step.Do == word && x.Step.Region == e.Step.Region && (x.Step.Node == 0 || x.Step.Node == e.Step.Node) && x.Step.overlaps(e.Step) {
			return x.To
		}
	}
	return r.Length
}

// overlaps says whether a way of one step is one of another, in either direction;
// steps about something else always do.
func (s Step) overlaps(o Step) bool {
	if !s.between() {
		return true
	}
	some := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
	}
	return some(s.Between, o.Between) && some(s.And, o.And) || some(s.Between, o.And) && some(s.And, o.Between)
}
