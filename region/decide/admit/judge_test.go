package admit

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
)

// The limits of these tests, with "here" entitled to 40 % of each.
var judged = map[string]string{
	"minute": "name: minute, limit: 100, window: 1m",
	"hour":   "name: hour, limit: 1000, window: 1h",
	"watch":  "name: watch, limit: 10, window: 1s, shadow: true",
	"spy":    "name: spy, limit: 10, window: 1s, shadow: true",
}

// judgedAt is 10 s into a minute and 70 s into an hour.
const judgedAt = (2*3600 + 70) * 1_000_000

// judgedCase is the store's verdicts on a request of some limits.
type judgedCase struct {
	limits   []string
	admitted bool
	verdicts []algorithms.Verdict
	cost     quantity.Units
}

func (c judgedCase) judge(t testing.TB) Decision {
	t.Helper()
	var limits []string
	for _, name := range c.limits {
		limits = append(limits, judged[name])
	}
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere, limits...))
	all := n.tenure.Rules().Match(asked(request("a")))
	// The answer to judge is the second of two, as in a batch.
	other := algorithms.Answer{Admitted: !c.admitted, Verdicts: make([]algorithms.Verdict,
		len(all))}
	d := algorithms.Decided{Head: algorithms.Head{Now: judgedAt},
		Answers: []algorithms.Answer{other, {Admitted: c.admitted, Verdicts: c.verdicts}}}
	for _, a := range all {
		d.Buckets = append(d.Buckets,
			algorithms.State{Cell: algorithms.CellAt(judgedAt, a.Target.Terms.Window),
				Entitlement: a.Target.Terms.Entitlement, Share: a.Target.Terms.Entitlement + 1,
				Reset: 2 * a.Target.Terms.Window})
	}
	return n.judge(&way{Ask: queue.Ask{Cost: max(c.cost, 1), Applied: all}}, queue.Answer{Decided: d, Index: 1})
}

func TestJudge(t *testing.T) {
	type verdicts = []algorithms.Verdict
	const us = int64(time.Second / time.Microsecond)
	admitted := func(limit string, remaining quantity.Units, reset time.Duration) Decision {
		return Decision{Allowed: true, Reason: WithinLimit, Limit: limit, Remaining: remaining,
			ResetAfter: reset}
	}
	denied := func(limit string, reason Reason, remaining quantity.Units, retry,
		reset time.Duration) Decision {
		return Decision{Reason: reason, Limit: limit, Remaining: remaining, RetryAfter: retry,
			ResetAfter: reset}
	}
	shadowed := func(d Decision, names ...string) Decision { d.Shadowed = names; return d }
	// times after which the buckets are whole
	const minute, hour, second = 2 * time.Minute, 2 * time.Hour, 2 * time.Second
	for name, tc := range map[string]struct {
		judgedCase
		want Decision
	}{
		"one limit": {judgedCase{[]string{"minute"}, true, verdicts{{Remaining: 7}}, 1},
			admitted("minute", 7, minute)},
		"the one with least remaining": {judgedCase{[]string{"minute", "hour"}, true,
			verdicts{{Remaining: 7}, {Remaining: 6}}, 1},
			admitted("hour", 6, hour)},
		"the first of two with as much": {judgedCase{[]string{"hour", "minute"}, true,
			verdicts{{Remaining: 7}, {Remaining: 7}}, 1},
			admitted("hour", 7, hour)},
		"one denies": {judgedCase{[]string{"minute"}, false,
			verdicts{{Remaining: 2, Retry: 50 * us}}, 3},
			denied("minute", OverLimit, 2, 50*time.Second, minute)},
		"the one that denies, not the one with least remaining": {
			judgedCase{[]string{"minute", "hour"}, false,
				verdicts{{Remaining: 0}, {Remaining: 5, Retry: 3530 * us}}, 6},
			denied("hour", OverLimit, 5, 3530*time.Second, hour)},
		"the one that denies, listed first": {judgedCase{[]string{"hour", "minute"}, false,
			verdicts{{Retry: 3530 * us}, {Remaining: 0}}, 1},
			denied("hour", OverLimit, 0, 3530*time.Second, hour)},
		"the one that denies longest": {
			judgedCase{[]string{"minute", "hour"}, false,
				verdicts{{Retry: 50 * us}, {Retry: 3530 * us}}, 1},
			denied("hour", OverLimit, 0, 3530*time.Second, hour)},
		"the one that denies longest, listed first": {
			judgedCase{[]string{"hour", "minute"}, false,
				verdicts{{Retry: 3530 * us}, {Retry: 50 * us}}, 1},
			denied("hour", OverLimit, 0, 3530*time.Second, hour)},
		"never on the entitlement alone": {judgedCase{[]string{"minute"}, false,
			verdicts{{Remaining: 40, Retry: -1}}, 97},
			denied("minute", OverLimit, 40, 50*time.Second, minute)},
		"never with all that others may lend": {judgedCase{[]string{"minute"}, false,
			verdicts{{Remaining: 40, Retry: -1}}, 98},
			denied("minute", ExceedsRegionCapacity, 40, -1, minute)},
		"a capacity exceeded outlasts any wait": {
			judgedCase{[]string{"hour", "minute"}, false,
				verdicts{{Retry: 3530 * us}, {Remaining: 40, Retry: -1}}, 98},
			denied("minute", ExceedsRegionCapacity, 40, -1, minute)},
		"a wait does not outlast a capacity exceeded": {
			judgedCase{[]string{"minute", "hour"}, false, verdicts{{Remaining: 40, Retry: -1},
				{Retry: 3530 * us}}, 98},
			denied("minute", ExceedsRegionCapacity, 40, -1, minute)},
		"the whole limit is no more than it": {judgedCase{[]string{"minute"}, false,
			verdicts{{Remaining: 40, Retry: -1}}, 100},
			denied("minute", ExceedsRegionCapacity, 40, -1, minute)},
		"above the limit": {judgedCase{[]string{"minute"}, false,
			verdicts{{Remaining: 40, Retry: -1}}, 101},
			denied("minute", Never, 40, -1, minute)},
		"shadow never decides beside a real one": {
			judgedCase{[]string{"watch", "minute"}, true, verdicts{{Remaining: 0}, {Remaining: 7}},
				1}, admitted("minute", 7, minute)},
		"shadow over its limit is named and does not deny": {
			judgedCase{[]string{"watch", "minute"}, true, verdicts{{Retry: us}, {Remaining: 7}}, 1},
			shadowed(admitted("minute", 7, minute), "watch")},
		"shadow after the real one": {
			judgedCase{[]string{"minute", "watch"}, true, verdicts{{Remaining: 7}, {Retry: -1}}, 5},
			shadowed(admitted("minute", 7, minute), "watch")},
		"shadow over its limit while a real one denies": {
			judgedCase{[]string{"watch", "minute", "spy"}, false,
				verdicts{{Retry: -1}, {Retry: 50 * us}, {Retry: us}}, 5},
			shadowed(denied("minute", OverLimit, 0, 50*time.Second, minute), "watch", "spy")},
		"shadow alone": {judgedCase{[]string{"watch"}, true, verdicts{{Remaining: 3}}, 1},
			admitted("watch", 3, second)},
		"shadow alone and over its limit": {judgedCase{[]string{"watch"}, true,
			verdicts{{Retry: us}}, 1},
			shadowed(admitted("watch", 0, second), "watch")},
		"two shadows alone": {judgedCase{[]string{"watch", "spy"}, true,
			verdicts{{Remaining: 3}, {Remaining: 2}}, 1}, admitted("spy", 2, second)},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.judge(t)
			if !slices.Equal(got.Shadowed, tc.want.Shadowed) {
				t.Errorf("shadowed %v, want %v", got.Shadowed, tc.want.Shadowed)
			}
			if got.Allowed != tc.want.Allowed || got.Reason != tc.want.Reason ||
				got.Limit != tc.want.Limit ||
				got.Remaining != tc.want.Remaining || got.RetryAfter != tc.want.RetryAfter ||
				got.ResetAfter != tc.want.ResetAfter {
				t.Errorf("decision %+v\nwant     %+v", got, tc.want)
			}
		})
	}
}

// All that a decision says about a limit is about the same limit.
func TestJudgeDescribesTheDecider(t *testing.T) {
	d := judgedCase{[]string{"minute", "hour"}, true, []algorithms.Verdict{{Remaining: 7},
		{Remaining: 6}}, 1}.judge(t)
	if d.LimitUnits != 1000 || d.Window != time.Hour || d.Entitlement != 400 || d.Share != 401 ||
		d.Cell != 2 || d.At != judgedAt {
		t.Errorf("decision %+v", d)
	}
}

// A store restored from an old copy may have lent more than its entitlement. No decision shows a
// negative share.
func TestJudgeShowsNoNegativeShare(t *testing.T) {
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere, judged["minute"]))
	d := n.judge(&way{Ask: queue.Ask{Cost: 1, Applied: n.tenure.Rules().Match(asked(request("a")))}},
		queue.Answer{Decided: algorithms.Decided{Head: algorithms.Head{Now: judgedAt},
			Buckets: []algorithms.State{{Share: -5}},
			Answers: []algorithms.Answer{{Verdicts: []algorithms.Verdict{{Retry: 1}}}}}})
	if d.Share != 0 {
		t.Errorf("share %d", d.Share)
	}
}

// TestJudgeProperties checks judge's promises on random limits in random order.
func TestJudgeProperties(t *testing.T) {
	shadows := []string{"watch", "spy"}
	suite.Check(t, func(r *rapid.T) {
		limits := rapid.Permutation([]string{"minute", "hour", "watch", "spy"}).Draw(r, "limits")
		limits = limits[:rapid.IntRange(1, len(limits)).Draw(r, "count")]
		c := judgedCase{limits: limits, admitted: true, cost: 1}
		var real []int
		for i, name := range limits {
			v := algorithms.Verdict{Remaining: quantity.Units(rapid.Int64Range(0, 3).Draw(r,
				"remaining")), Retry: rapid.Int64Range(-1, 2).Draw(r, "retry")}
			c.verdicts = append(c.verdicts, v)
			if !slices.Contains(shadows, name) {
				real = append(real, i)
				c.admitted = c.admitted && v.Retry == 0
			}
		}
		d := c.judge(t)
		decider := slices.Index(limits, d.Limit)
		if d.Allowed != c.admitted {
			r.Fatalf("allowed %v, the store said %v", d.Allowed, c.admitted)
		}
		if len(real) > 0 && !slices.Contains(real, decider) {
			r.Fatalf("decided by shadow limit %s", d.Limit)
		}
		for i, v := range c.verdicts {
			over := slices.Contains(shadows, limits[i]) && v.Retry != 0
			if over != slices.Contains(d.Shadowed, limits[i]) {
				r.Fatalf("shadowed %v with verdicts %v of %v", d.Shadowed, c.verdicts, limits)
			}
		}
		for _, i := range real {
			v, w := c.verdicts[i], c.verdicts[decider]
			if c.admitted && v.Remaining < w.Remaining {
				r.Fatalf("%s decided, %s has less remaining: %v", d.Limit, limits[i], c.verdicts)
			}
			if !c.admitted && (w.Retry == 0 || w.Retry > 0 && (v.Retry < 0 || v.Retry > w.Retry)) {
				r.Fatalf("%s decided, %s denies longer: %v", d.Limit, limits[i], c.verdicts)
			}
		}
		if d.Allowed != (d.RetryAfter == 0) || d.ResetAfter <= 0 {
			r.Fatalf("allowed %v, retry after %v, reset after %v", d.Allowed, d.RetryAfter,
				d.ResetAfter)
		}
	})
}

// A cost above one of the limits is never admitted, in whatever order the limits stand.
func TestNeverWhateverTheOrder(t *testing.T) {
	for _, limits := range [][]string{{"minute", "hour"}, {"hour", "minute"}} {
		d := judgedCase{limits, false, []algorithms.Verdict{{Retry: -1}, {Retry: -1}}, 500}.judge(t)
		if d.Reason != Never {
			t.Errorf("cost 500 on minute (100) and hour (1000, here 400) as %v: %s", limits,
				d.Reason)
		}
	}
}
