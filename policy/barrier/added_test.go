//go:build !race

package barrier_test

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
)

// added returns what a has of a limit that only the newest of some documents has, or some of them.
func added(v *barrier.View) quantity.Units {
	return barrier.Least(v.Standing(&v.Agenda.Newest().Limits[0]).Binding, 0)[v.Region].Units
}

// TestAnAddedLimitIsSplitEvenly until all regions of before have acknowledged it, or by its own
// weights where that is less. What they used before that does not count: it was nothing.
func TestAnAddedLimitIsSplitEvenly(t *testing.T) {
	before := documents.Parse(t, 1, abc, "name: other, domain: elsewhere, limit: 5, window: 1s")
	adds := documents.Parse(t, 2, abc, limit+"{a: 7, b: 1, c: 1}")
	h := barrier.Heard{}
	for _, c := range []struct {
		region  string
		a, b    quantity.Units
		waiting string
	}{{"a", 300, 100, "b c"}, {"b", 300, 100, "c"}, {"c", 700, 100, ""}} {
		h.Add(c.region, adds.Epoch(), 500_000)
		for region, want := range map[string]quantity.Units{"a": c.a, "b": c.b} {
			v := &barrier.View{Agenda: open(t, before, adds), Region: region, Heard: h, Now: 500_000}
			s := v.Standing(&adds.Limits[0])
			if got := added(v); got != want || strings.Join(s.Waiting, " ") != c.waiting || s.Open() != (c.waiting != "") {
				t.Errorf("%s acknowledged: %s has %d, want %d; it waits for %v", c.region, region, got, want, s.Waiting)
			}
		}
	}
	gone := documents.With(t, "fenced: [c]", documents.Parse(t, 2, abc, limit+"{a: 7, b: 1, c: 1}"))
	h = barrier.Heard{}
	h.Add("a", gone.Epoch(), 5)
	h.Add("b", gone.Epoch(), 5)
	if got := added(&barrier.View{Agenda: open(t, before, gone), Region: "a", Heard: h, Now: 5}); got != 788 {
		t.Errorf("a has %d while c is fenced", got)
	}
}

// TestWhatWasUsedByAnotherAddition counts: b took version 3 before it heard of version 2, and used a
// part that version 2 gives to a.
func TestWhatWasUsedByAnotherAddition(t *testing.T) {
	before := documents.Parse(t, 1, abc, "name: other, domain: elsewhere, limit: 5, window: 1s")
	second, third := documents.Parse(t, 2, abc, limit+"{a: 6, b: 0, c: 3}"), documents.Parse(t, 3, abc, limit+"{a: 6, b: 3, c: 0}")
	for b, want := range map[quantity.StoreTime]quantity.StoreTime{400_000: 2_000_000, 700_000: 0} {
		h := barrier.Heard{}
		for _, region := range []string{"a", "b", "c"} {
			h.Add(region, second.Epoch(), 500_000)
		}
		h.Add("b", third.Epoch(), b)
		v := &barrier.View{Agenda: open(t, before, second, third), Region: "a", Heard: h, Now: 800_000}
		if s := v.Standing(&third.Limits[0]); s.Opens != want || (s.From == 0) != (want > 0) {
			t.Errorf("b took version 3 at %d: the second counts without the first from %d on, %+v", b, s.Opens, s.From)
		}
	}
}

// TestAnAddedLimitInHomeMode is split evenly, too: nobody has all of it.
func TestAnAddedLimitInHomeMode(t *testing.T) {
	before := documents.Parse(t, 1, abc, "name: other, domain: elsewhere, limit: 5, window: 1s")
	adds := documents.Parse(t, 2, abc, "name: l, limit: 4, window: 1s")
	all := quantity.Units(0)
	for _, region := range []string{"a", "b", "c"} {
		units := added(&barrier.View{Agenda: open(t, before, adds), Region: region, Heard: barrier.Heard{}, Now: 5})
		if all += units; units > 2 {
			t.Errorf("%s has %d of 4", region, units)
		}
	}
	if all == 0 {
		t.Error("nobody has anything")
	}
}
