package admit

import (
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
)

// way is a request on its way to a decision, with what the limits document says of it.
type way struct {
	queue.Ask
	lists   *listed           // nil: the request has none
	exempts *policy.Exemption // that the request meets which has no lists; nil: none
	stray   string            // a descriptor whose value meets no condition; see policy.Matcher.Stray
}

// prepare finds the limits of a request and sets its deadline.
func (l *Limiter) prepare(q Request, commit bool, room []*rules.Applied) way {
	r := l.tenure.Rules()
	w := way{Ask: queue.Ask{Rules: r, Cost: q.Cost, Commit: commit, Caller: q.Caller}.Waits(l.config.On.Now(), l.waitOf(&q))}
	if q.Lists != nil {
		w.matchLists(q, room)
		return w
	}
	w.Applied = r.Append(room, q.Domain, q.Descriptors)
	w.exempts, w.stray = r.Exempt(q.Domain, q.Descriptors), r.Stray(q.Domain, q.Descriptors, nil)
	if r.Replaces {
		w.Applied = withoutReplaced(w.Applied, w.exempts)
	}
	if commit && q.ID != "" && len(w.Applied) > 0 {
		w.Once = onceKey(q, w.Applied)
	}
	return w
}
