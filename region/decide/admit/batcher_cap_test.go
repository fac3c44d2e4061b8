package admit

import (
	"errors"
	"fmt"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

// TestGroupsAreCapped: what one script call carries is bounded, and nobody is left out or
// overtaken.
func TestGroupsAreCapped(t *testing.T) {
	limit := &rules.Applied{Target: algorithms.LimitTarget{Target: algorithms.Target{Key: "k",
		Terms: algorithms.Terms{Kind: algorithms.SlidingWindowLog}}}}
	limit.Limit = unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
		"name: log, algorithm: sliding_window_log, limit: 100, window: 1m")).tenure.Rules().Match(asked(request("a")))[0].Limit
	var batch []waiting
	r := &rules.Rules{}
	for i := range 1000 {
		batch = append(batch, waiting{rules: r, applied: []*rules.Applied{limit},
			commit: true, cost: quantity.Units(i%97 + 1)})
	}
	n := 0
	for _, g := range group(batch) {
		var costs []quantity.Units
		for _, w := range g {
			if w.cost != batch[n].cost {
				t.Fatalf("request %d has cost %d, not %d", n, w.cost, batch[n].cost)
			}
			costs, n = append(costs, w.cost), n+1
		}
		if len(g)*4 > algorithms.MaxCosts || len(g) > 33 {
			t.Errorf("%d requests in one call: %v", len(g), costs)
		}
	}
	if n != len(batch) {
		t.Errorf("%d of %d requests are in a group", n, len(batch))
	}
}

// TestRequestsOfTooManyLimits: a request to which more limits apply than one script decides at a
// time is refused.
func TestRequestsOfTooManyLimits(t *testing.T) {
	var limits []string
	for i := range algorithms.MaxLoad + 1 {
		limits = append(limits, fmt.Sprintf("name: l%d, limit: 100, window: 1m", i))
	}
	for n, most := range map[int]bool{len(limits): true, len(limits) - 1: false} {
		c := unstarted(t, 1, documents.Parse(t, 1, hereAndThere, limits[:n]...))
		err := bounded(c.tenure.Rules().Match(asked(request("a"))))
		var field *FieldError
		if errors.As(err, &field) != most {
			t.Errorf("%d limits: %v", n, err)
		}
	}
}
