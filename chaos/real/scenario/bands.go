package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/chaos/real/report"
)

// ends maps the word of a step to the word of the step that ends its effect.
var ends = map[string]string{
	"cut": "heal", "delay": "heal", "lose": "heal", "kill": "start", "pause": "continue",
	"kill-redis":  "start-redis",
	"pause-redis": "continue-redis", "fail-disk": "mend-disk",
}

// bands returns the times during which something was broken.
func (r *Record) bands() (all []report.Band) {
	for i, e := range r.Events {
		if e.Step.Do == "load" ||
			slices.Contains([]string{"heal", "start", "continue", "start-redis", "continue-redis",
				"mend-disk"}, e.Step.Do) {
			continue
		}
		to := min(e.To, r.Length)
		if end, lasts := ends[e.Step.Do]; lasts && len(e.Step.Points) == 0 {
			to = r.endOf(e, end, r.Events[i:])
		}
		all = append(all, report.Band{From: e.From, To: max(to, e.From), Name: e.Step.Do,
			About: strings.TrimPrefix(e.Step.String(), e.Step.Do+": ")})
	}
	return all
}

// endOf returns when the effect of a step ended: when the first later step with the given word for
// the same target was done, or else the end of the run.
func (r *Record) endOf(e Event, word string, later []Event) time.Duration {
	for _, x := range later {
		if x.Step.Do == word && x.Step.Region == e.Step.Region && (x.Step.Node == 0 ||
			x.Step.Node == e.Step.Node) && x.Step.overlaps(e.Step) {
			return x.To
		}
	}
	return r.Length
}

// overlaps reports whether two steps share a way, in either direction. Steps that do not concern
// ways always overlap.
func (s Step) overlaps(o Step) bool {
	if !s.between() {
		return true
	}
	some := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
	}
	return some(s.Between, o.Between) && some(s.And, o.And) || some(s.Between, o.And) &&
		some(s.And, o.Between)
}
