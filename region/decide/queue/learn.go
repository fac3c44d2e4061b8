package queue

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
)

// heardOf says under which generation the store was asked, and when, by a clock that is never set.
type heardOf struct {
	generation   uint64
	asked, heard time.Duration
}

// learn has the buckets' memory learn what the store answered to a group of requests.
func learn(group []Ask, d algorithms.Decided, of heardOf) {
	for i, a := range group[0].Applied {
		a.Held.Learn(answerOf(group, i, d, of))
	}
}

// Learned returns what the store answered about the bucket of a request that has one.
func (a *Answer) Learned(w Ask) held.Answer {
	return answerOf([]Ask{w}, 0, a.Decided, a.of)
}

// answerOf returns what the store answered about one of the buckets of a group of requests.
func answerOf(group []Ask, place int, d algorithms.Decided, of heardOf) held.Answer {
	a := held.Answer{Generation: of.generation, Now: d.Now, Asked: of.asked, Heard: of.heard,
		State: d.Buckets[place], Kind: group[0].Applied[place].Target.Terms.Kind}
	a.Ends = group[0].Applied[place].Target.Terms.Opens(a.State.Cell + 1)
	for n := range group {
		cost, v := group[n].CostOf(place), d.Answers[n].Verdicts[place]
		fits := max(cost, 1) // a question asks about one unit
		switch {
		case v.Retry == 0:
			if v.Owed == 0 {
				fitted(&a, group[n].PortionOf(place), fits)
				a.Fitted = max(a.Fitted, fits)
			}
			if d.Answers[n].Admitted && !group[n].Chunk {
				a.Charged += cost
			}
		case group[n].PortionOf(place) < algorithms.Whole:
			denied(&a, group[n].PortionOf(place), fits, v)
		case a.Denied == 0 || fits < a.Denied:
			a.Denied, a.Verdict = fits, v
		}
	}
	return a
}

// fitted notes that a cost fitted into a part, and so into every larger one.
func fitted(a *held.Answer, part quantity.PPM, cost quantity.Units) {
	if part >= algorithms.Whole {
		return
	}
	lower(a, part)
	for i := range a.Lower {
		if its := &a.Lower[i]; its.Part >= part {
			its.Fitted = max(its.Fitted, cost)
		}
	}
}

// denied notes that a cost did not fit into a part.
func denied(a *held.Answer, part quantity.PPM, cost quantity.Units, v algorithms.Verdict) {
	if its := lower(a, part); its.Denied == 0 || cost < its.Denied {
		its.Denied, its.Verdict = cost, v
	}
}

// lower returns what is said of a part, which it adds if nothing was.
func lower(a *held.Answer, part quantity.PPM) *held.PartAnswer {
	for i := range a.Lower {
		if a.Lower[i].Part == part {
			return &a.Lower[i]
		}
	}
	its := held.PartAnswer{Part: part, Free: max(a.State.Free-a.State.Withheld(a.Kind, part), 0)}
	for _, other := range a.Lower {
		if other.Part < part {
			its.Fitted = max(its.Fitted, other.Fitted)
		}
	}
	a.Lower = append(a.Lower, its)
	return &a.Lower[len(a.Lower)-1]
}
