package admit

import (
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
)

// way is a request on its way to a decision, with what the limits document says of it.
type way struct {
	queue.Ask
	lists   *listed           // nil: the request has none
	exempts *policy.Exemption // that the request meets which has no lists; nil: none
	others  bool              // what it charges always is left out
	classes []policy.Class    // of the request under each limit; nil: none of them has classes
	stray   string            // a descriptor whose value meets no condition; see policy.Matcher.Stray
}

// prepare finds the limits of a request and sets its deadline.
func (l *Limiter) prepare(q Request, commit bool, room []*rules.Applied) way {
	r := l.tenure.Rules()
	w := way{Ask: queue.Ask{Rules: r, Cost: q.Cost, Commit: commit,
		Caller: q.Caller}.Waits(l.config.On.Now(), l.waitOf(&q))}
	w.match(q, room)
	if q.Question {
		w.costing(make([]quantity.Units, len(w.Applied)))
	}
	if q.others {
		w.leaveCharged()
	}
	w.classify(q)
	if commit && q.ID != "" && len(w.Applied) > 0 {
		w.Once = onceKey(q.ID, q.Cost, w.Applied)
	}
	return w
}

// match finds the limits that apply to a request, and what it costs of each.
func (w *way) match(q Request, room []*rules.Applied) {
	if q.Lists != nil {
		w.matchLists(q, room)
		return
	}
	r := w.Rules
	w.Applied = r.Append(room, q.Domain, q.Descriptors)
	w.exempts, w.stray = r.Exempt(q.Domain, q.Descriptors), r.Stray(q.Domain, q.Descriptors, nil)
	if r.Replaces {
		w.withoutReplaced()
	}
}
