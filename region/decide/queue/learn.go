package queue

import (
	"time"

	"github.com/quotad/quotad/algorithms"
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
		State: d.Buckets[place]}
	a.Ends = group[0].Applied[place].Target.Terms.Opens(a.State.Cell + 1)
	for n := range group {
		cost, v := group[n].CostOf(place), d.Answers[n].Verdicts[place]
		fits := max(cost, 1) // a question asks about one unit
		switch {
		case v.Retry == 0:
			if v.Owed == 0 {
				a.Fitted = max(a.Fitted, fits)
			}
			if d.Answers[n].Admitted && !group[n].Chunk {
				a.Charged += cost
			}
		case a.Denied == 0 || fits < a.Denied:
			a.Denied, a.Verdict = fits, v
		}
	}
	return a
}
