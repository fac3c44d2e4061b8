package admit

import (
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
)

// classify finds the class that the request has under each of its limits, and so the part of the
// limit's rights that it may use. A charge heeds no class.
func (w *way) classify(q Request) {
	if !slices.ContainsFunc(w.Applied, func(a *rules.Applied) bool { return a.Limit.Classes != nil }) {
		return
	}
	w.classes = make([]policy.Class, len(w.Applied))
	for i := range w.classes {
		w.classes[i].Part = policy.PPMOne
	}
	if q.Lists == nil {
		for i, a := range w.Applied {
			if a.Limit.Classes != nil {
				w.classes[i], _ = a.Limit.ClassOf(q.Descriptors)
			}
		}
	} else {
		w.classifyLists(q)
	}
	if slices.ContainsFunc(w.classes, func(c policy.Class) bool { return c.Part < policy.PPMOne }) {
		w.Portions = make([]quantity.PPM, len(w.classes))
		for i, c := range w.classes {
			w.Portions[i] = quantity.PPM(c.Part)
		}
	}
}

// classifyLists finds the classes of a request with lists. A limit that several of them meet takes
// the request for what the list of the smallest part says.
func (w *way) classifyLists(q Request) {
	for n, its := range w.lists.met {
		for _, i := range its.Limits {
			l := w.Applied[i].Limit
			if l.Classes == nil {
				continue
			}
			c, known := l.ClassOfList(q.Lists[n].Entries)
			if known && (w.classes[i].Name == "" || c.Part < w.classes[i].Part) {
				w.classes[i] = c
			}
		}
	}
}

// class returns the name of the request's class under one of its limits; empty: it has none.
func (w *way) class(i int) string {
	if w.classes == nil {
		return ""
	}
	return w.classes[i].Name
}

// left returns how many units a request of the same class still fits of one of its limits, and how
// many more are free and kept for classes with a larger part.
func (w *way) left(i int, a queue.Answer) (remaining, kept quantity.Units) {
	v, s := a.Own().Verdicts[i], &a.Decided.Buckets[i]
	free, part := v.Remaining, w.PortionOf(i)
	if part == algorithms.Whole {
		return free, 0
	}
	remaining = max(free-s.Withheld(w.Applied[i].Limit.Algorithm, part), 0)
	if v.Retry != 0 && !w.Charge { // a share that is no whole number of units leaves a little less
		remaining = min(remaining, max(w.CostOf(i), 1)-1)
	}
	return remaining, free - remaining
}

// countClasses counts a request of limits with classes: a denied one for the limit that denied it.
func (c *accounts) countClasses(w *way, d Decision) {
	if w.classes == nil || d.Repeated {
		return
	}
	for i, a := range w.Applied {
		if a.Limit.Classes == nil || !d.Allowed && a.Limit.Name != d.Limit {
			continue
		}
		class := w.class(i)
		if class == "" {
			c.metrics.unclassed.counter(a.Limit.Name, "").Inc()
		}
		became := classDenied
		if d.Allowed {
			became = classAdmitted
		}
		c.metrics.classUnits.WithLabelValues(a.Limit.Name, class, became).Add(float64(w.CostOf(i)))
	}
}

// What became of units that are counted by class.
const (
	classAdmitted = "admitted"
	classDenied   = "denied"
)
