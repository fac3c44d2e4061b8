//go:build !race

package barrier_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
)

// TestAFenceIsNotForgotten: a document that follows one which fences a region fences it, too, or
// counts that it has returned. The count never falls.
func TestAFenceIsNotForgotten(t *testing.T) {
	const all = "name: l, limit: 900, window: 1s"
	ab := abc[:2]
	of := func(version int, regions []string, lines ...string) *policy.Document {
		d := documents.Parse(t, version, regions, all)
		for _, line := range lines {
			d = documents.With(t, line, d)
		}
		return d
	}
	for name, c := range map[string]struct {
		open  []*policy.Document
		next  *policy.Document
		taken bool
	}{
		"dropped":                        {[]*policy.Document{of(1, abc, "fenced: [c]")}, of(2, abc), false},
		"kept":                           {[]*policy.Document{of(1, abc, "fenced: [c]")}, of(2, abc, "fenced: [c]"), true},
		"returned":                       {[]*policy.Document{of(1, abc, "fenced: [c]")}, of(2, abc, "returned: {c: 1}"), true},
		"returned, and fenced again":     {[]*policy.Document{of(1, abc, "fenced: [c]")}, of(2, abc, "fenced: [c]", "returned: {c: 1}"), true},
		"returned more often":            {[]*policy.Document{of(1, abc, "fenced: [c]")}, of(2, abc, "returned: {c: 7}"), true},
		"fenced again, and dropped":      {[]*policy.Document{of(1, abc, "fenced: [c]", "returned: {c: 1}")}, of(2, abc, "returned: {c: 1}"), false},
		"the count falls":                {[]*policy.Document{of(1, abc, "returned: {c: 2}")}, of(2, abc, "returned: {c: 1}"), false},
		"the count is gone":              {[]*policy.Document{of(1, abc, "returned: {c: 2}")}, of(2, abc), false},
		"the count falls, fenced":        {[]*policy.Document{of(1, abc, "returned: {c: 2}")}, of(2, abc, "fenced: [c]"), false},
		"removed, fence dropped":         {[]*policy.Document{of(1, abc, "fenced: [c]")}, of(2, ab, "removed: [c]"), false},
		"removed, fence kept":            {[]*policy.Document{of(1, abc, "fenced: [c]")}, of(2, ab, "removed: [c]", "fenced: [c]"), true},
		"removed, and back":              {[]*policy.Document{of(1, ab, "removed: [c]", "fenced: [c]")}, of(2, abc), false},
		"removed, and back, and said":    {[]*policy.Document{of(1, ab, "removed: [c]", "fenced: [c]")}, of(2, abc, "returned: {c: 1}"), true},
		"an older one, which fences":     {[]*policy.Document{of(1, abc), of(3, abc)}, of(2, abc, "fenced: [c]"), false},
		"an older one, known by a newer": {[]*policy.Document{of(1, abc), of(3, abc, "returned: {c: 1}")}, of(2, abc, "fenced: [c]"), true},
	} {
		_, err := open(t, c.open...).Learn(c.next)
		if c.taken && err != nil || !c.taken && (!errors.Is(err, barrier.ErrUnfenced) || !barrier.Refused(err)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhoIsWaitedForWhenARegionReturns: who knows the fence waits for those that shrink, and not for
// the region itself, which need not run yet. Who does not know it waits for all, and so does the
// region.
func TestWhoIsWaitedForWhenARegionReturns(t *testing.T) {
	one := documents.Parse(t, 1, abc, limit+"{a: 4, b: 3, c: 2}")
	fenced := documents.With(t, "fenced: [a]", documents.Parse(t, 2, abc, limit+"{a: 4, b: 3, c: 2}"))
	back := documents.With(t, "returned: {a: 1}", documents.Parse(t, 3, abc, limit+"{a: 2, b: 3, c: 4}"))
	for name, c := range map[string]struct {
		region  string
		open    []*policy.Document
		waiting []string
		nothing bool
	}{
		"b knows the fence":                      {"b", []*policy.Document{fenced, back}, []string{"b", "c"}, false},
		"b knows it, and the document of before": {"b", []*policy.Document{one, fenced, back}, []string{"b", "c"}, false},
		"b does not":                             {"b", []*policy.Document{one, back}, []string{"a", "b", "c"}, false},
		"a knows it":                             {"a", []*policy.Document{one, fenced, back}, []string{"a", "b", "c"}, true},
		"a does not":                             {"a", []*policy.Document{one, back}, []string{"a", "b", "c"}, true},
	} {
		v := &barrier.View{Agenda: open(t, c.open...), Region: c.region, Heard: barrier.Heard{}, Now: 1}
		s := v.Standing(&back.Limits[0])
		if c.region == "b" { // whose own acknowledgement stands for that of the life that has ended
			v.Heard.Add("b", back.Epoch(), 1)
			v.Heard.Add("c", back.Epoch(), 1)
			if known := len(c.waiting) == 2; (v.Standing(&back.Limits[0]).Waiting == nil) != known {
				t.Errorf("%s: without a it waits for %v", name, v.Standing(&back.Limits[0]).Waiting)
			}
		}
		if c.region == "a" { // another document may have given more to c, which grows by those that are known
			v.Heard.Add("a", back.Epoch(), 1)
			v.Heard.Add("b", back.Epoch(), 1)
			if !slices.Equal(v.Standing(&back.Limits[0]).Waiting, []string{"c"}) {
				t.Errorf("%s: without c it waits for %v", name, v.Standing(&back.Limits[0]).Waiting)
			}
		}
		if s.Returning != c.nothing || !subset(c.waiting, s.Waiting) {
			t.Errorf("%s: waits for %v, want %v; it has nothing: %v", name, s.Waiting, c.waiting, s.Returning)
		}
	}
}

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

// TestARemovedBucketHasTheTimeToFill, and a month its calendar, as if it were changed.
func TestARemovedBucketHasTheTimeToFill(t *testing.T) {
	bucket := documents.Parse(t, 1, abc, "name: l, algorithm: token_bucket, limit: 60, window: 1m, burst: 600")
	gone := documents.Parse(t, 2, abc, "name: other, domain: elsewhere, limit: 5, window: 1s")
	v := &barrier.View{Agenda: open(t, bucket, gone), Region: "a", Heard: barrier.Heard{}, Now: 1}
	for _, region := range []string{"a", "b", "c"} {
		v.Heard.Add(region, gone.Epoch(), 500_000)
	}
	if left := v.Leftovers(); len(left) != 1 || left[0].Standing.Opens != quantity.StoreTime(602_000_000) {
		t.Errorf("%+v", left)
	}
}
