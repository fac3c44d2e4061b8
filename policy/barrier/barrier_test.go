//go:build !race

package barrier_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
)

var abc = []string{"a: {weight: 1}", "b: {weight: 1}", "c: {weight: 1}"}

const limit = "name: l, limit: 900, window: 1s, weights: "

// told returns what was heard of documents: the time of every region that acknowledged each.
func told(acks map[string]map[*policy.Document]quantity.StoreTime) barrier.Heard {
	h := barrier.Heard{}
	for region, all := range acks {
		for d, at := range all {
			h.Add(region, d.Epoch(), at)
		}
	}
	return h
}

// standing returns the standing of the newest document's first limit, by those who acknowledged
// that document: by region, at a time.
func standing(t documents.T, now quantity.StoreTime, heard barrier.Heard, all ...*policy.Document) barrier.Standing {
	v := &barrier.View{Agenda: open(t, all...), Region: "a", Heard: heard, Now: now}
	return v.Standing(&v.Agenda.Newest().Limits[0])
}

// TestWhoIsWaitedFor: a share moves from a to b, and c keeps its own. a is waited for, and one of
// the others, for a majority.
func TestWhoIsWaitedFor(t *testing.T) {
	old := documents.Parse(t, 1, abc, limit+"{a: 4, b: 2, c: 3}")
	newer := documents.Parse(t, 2, abc, limit+"{a: 2, b: 4, c: 3}")
	for name, tc := range map[string]struct {
		acknowledged map[string]quantity.StoreTime
		waiting      string
		opens        quantity.StoreTime
	}{
		"nobody":     {nil, "a b c", 0},
		"b and c":    {map[string]quantity.StoreTime{"b": 1, "c": 1}, "a", 0},
		"a alone":    {map[string]quantity.StoreTime{"a": 1}, "b c", 0},
		"a and b":    {map[string]quantity.StoreTime{"a": 500_000, "b": 7_000_000}, "", 2_000_000},
		"a, in time": {map[string]quantity.StoreTime{"a": 1_999_999, "c": 0}, "", 3_000_000},
		"a, later":   {map[string]quantity.StoreTime{"a": 2_000_000, "c": 0}, "", 4_000_000},
	} {
		h := barrier.Heard{}
		for region, at := range tc.acknowledged {
			h.Add(region, newer.Epoch(), at)
		}
		s := standing(t, 1, h, old, newer)
		if got := strings.Join(s.Waiting, " "); got != tc.waiting || s.Opens != tc.opens || !s.Open() {
			t.Errorf("%s: waits for %q, opens at %d, open: %v; want %q, %d", name, got, s.Opens, s.Open(),
				tc.waiting, tc.opens)
		}
		if tc.opens == 0 {
			continue
		}
		if s := standing(t, tc.opens-1, h, old, newer); !s.Open() {
			t.Errorf("%s: counts alone too early", name)
		}
		if s := standing(t, tc.opens, h, old, newer); s.Open() {
			t.Errorf("%s: %+v at %d", name, s, tc.opens)
		}
	}
}

// TestALowerLendingLimitIsWaitedFor: what a region lent under the older document is remembered as long
// as that one binds. So a region that may lend less has less, though its part is the same.
func TestALowerLendingLimitIsWaitedFor(t *testing.T) {
	const weights = "{a: 1, b: 1, c: 1}"
	old := documents.Parse(t, 1, abc, limit+weights)
	newer := documents.Parse(t, 2, abc, limit+weights+", lending_limit: 0.5")
	acks := map[string]map[*policy.Document]quantity.StoreTime{"a": {newer: 5}, "b": {newer: 5}}
	if s := standing(t, 5, told(acks), old, newer); !s.Open() || strings.Join(s.Waiting, " ") != "c" {
		t.Errorf("without c: %+v", s)
	}
	acks["c"] = map[*policy.Document]quantity.StoreTime{newer: 1_000_000}
	if s := standing(t, 1_000_000, told(acks), old, newer); !s.Open() || s.Opens != 3_000_000 {
		t.Errorf("c a second later: %+v", s)
	}
}

// TestARaiseWaitsForAMajority and for nothing else: it takes effect at once.
func TestARaiseWaitsForAMajority(t *testing.T) {
	old := documents.Parse(t, 1, abc, limit+"{a: 1, b: 1, c: 1}")
	raised := documents.Parse(t, 2, abc, strings.Replace(limit, "900", "1200", 1)+"{a: 1, b: 1, c: 1}")
	all := map[string]map[*policy.Document]quantity.StoreTime{"a": {raised: 5}}
	if s := standing(t, 5, told(all), old, raised); !s.Open() || strings.Join(s.Waiting, " ") != "b c" {
		t.Errorf("one of three: %+v", s)
	}
	all["c"] = map[*policy.Document]quantity.StoreTime{raised: 5}
	if s := standing(t, 5, told(all), old, raised); s.Open() || s.Waiting != nil {
		t.Errorf("two of three: %+v", s)
	}
}

// TestAnAcknowledgementIsForOneDocument: a region that skipped a version is not bound by it.
func TestAnAcknowledgementIsForOneDocument(t *testing.T) {
	first := documents.Parse(t, 1, abc, limit+"{a: 4, b: 2, c: 3}")
	second := documents.Parse(t, 2, abc, limit+"{a: 2, b: 4, c: 3}")
	third := documents.Parse(t, 3, abc, limit+"{a: 3, b: 2, c: 4}")
	every := map[*policy.Document]quantity.StoreTime{third: 5}
	v := &barrier.View{Agenda: open(t, first, second), Region: "b", Now: 1 << 40,
		Heard: told(map[string]map[*policy.Document]quantity.StoreTime{"a": every, "b": every, "c": every})}
	if s := v.Standing(&second.Limits[0]); !s.Open() || len(s.Waiting) != 3 {
		t.Errorf("%+v", s)
	}
}

// TestOtherEditsOpenNothing: what does not change the terms of a limit does not open it.
func TestOtherEditsOpenNothing(t *testing.T) {
	const other = "name: other, limit: 5, window: 1m"
	old := documents.Parse(t, 1, abc, limit+"{a: 1, b: 1, c: 1}", other)
	for name, d := range map[string]*policy.Document{
		"another limit changes": documents.Parse(t, 2, abc, limit+"{a: 1, b: 1, c: 1}", "name: other, limit: 7, window: 1m"),
		"a failure mode":        documents.Parse(t, 2, abc, limit+"{a: 1, b: 1, c: 1}, on_store_failure: deny", other),
		"a shadow":              documents.Parse(t, 2, abc, limit+"{a: 1, b: 1, c: 1}, shadow: true", other),
		"nothing":               documents.Parse(t, 2, abc, limit+"{a: 1, b: 1, c: 1}", other),
	} {
		if s := standing(t, 0, nil, old, d); s.Open() || s.Waiting != nil || s.Opens != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestAFencedRegionIsNotWaitedFor, and gets nothing.
func TestAFencedRegionIsNotWaitedFor(t *testing.T) {
	old := documents.Parse(t, 1, abc, limit+"{a: 1, b: 1, c: 7}")
	fenced := documents.With(t, "fenced: [c]", documents.Parse(t, 2, abc, limit+"{a: 1, b: 1, c: 7}"))
	if w := fenced.Limits[0].Weights; !slices.Equal(w, []quantity.Units{1, 1, 0}) {
		t.Errorf("weights %v", w)
	}
	h := barrier.Heard{}
	h.Add("a", fenced.Epoch(), 3_200_000)
	if s := standing(t, 4_000_000, h, old, fenced); strings.Join(s.Waiting, "") != "b" {
		t.Errorf("c is no part of a majority: %+v", s)
	}
	h.Add("b", fenced.Epoch(), 3_300_000)
	if s := standing(t, 4_000_000, h, old, fenced); !s.Open() || s.Opens != 5_000_000 || s.Waiting != nil {
		t.Errorf("%+v", s)
	}
}

// TestAnotherWindowIsChargedBeside what took its place, until it weighs no more; a limit that goes
// without another in its place is not, and stays known as long.
func TestAnotherWindowIsChargedBeside(t *testing.T) {
	minute := documents.Parse(t, 1, abc, "name: l, limit: 900, window: 1m")
	hour := documents.Parse(t, 2, abc, "name: l, limit: 900, window: 1h")
	gone := documents.Parse(t, 2, abc, "name: other, domain: elsewhere, limit: 900, window: 1h")
	every := []string{"a", "b", "c"}
	at := quantity.StoreTime(90 * time.Second.Microseconds())
	for _, tc := range []struct {
		newer         *policy.Document
		acks          []string
		now           time.Duration
		left, charged int
	}{
		{hour, []string{"a", "b"}, time.Hour, 1, 1}, {hour, every, 2 * time.Minute, 1, 1},
		{hour, every, 3*time.Minute - time.Microsecond, 1, 1}, {hour, every, 3 * time.Minute, 0, 0},
		{gone, []string{"a", "b"}, time.Hour, 1, 0}, {gone, every, 3*time.Minute - time.Microsecond, 1, 0},
		{gone, every, 3 * time.Minute, 0, 0},
	} {
		h := barrier.Heard{}
		for _, region := range tc.acks {
			h.Add(region, tc.newer.Epoch(), at)
		}
		v := &barrier.View{Agenda: open(t, minute, tc.newer), Region: "a", Heard: h,
			Now: quantity.StoreTime(tc.now.Microseconds())}
		left := v.Leftovers()
		charged := slices.DeleteFunc(slices.Clone(left), func(l barrier.Leftover) bool { return !l.Charged })
		if len(left) != tc.left || len(charged) != tc.charged {
			t.Errorf("%v acknowledged, after %v: %d are known, want %d, and %d are charged, want %d", tc.acks,
				tc.now, len(left), tc.left, len(charged), tc.charged)
		}
		if settled := v.Settled(); settled != 1-tc.left {
			t.Errorf("%v acknowledged, after %v: settled at %d", tc.acks, tc.now, settled)
		}
	}
}

// TestABucketHasTheTimeToFill: a share of a bucket moves only when all of it could have filled
// again.
func TestABucketHasTheTimeToFill(t *testing.T) {
	const bucket = "name: l, algorithm: token_bucket, limit: 60, window: 1m, burst: 600, weights: "
	old := documents.Parse(t, 1, abc, bucket+"{a: 4, b: 2, c: 3}")
	newer := documents.Parse(t, 2, abc, bucket+"{a: 2, b: 4, c: 3}")
	h := barrier.Heard{}
	h.Add("a", newer.Epoch(), 500_000)
	h.Add("b", newer.Epoch(), 500_000)
	want := quantity.StoreTime((2*time.Second + 600*time.Second).Microseconds())
	if s := standing(t, 1, h, old, newer); s.Opens != want {
		t.Errorf("opens at %d, want %d", s.Opens, want)
	}
}

// TestLearn: what an agenda takes, and in what order.
func TestLearn(t *testing.T) {
	one, two, other, three := documents.Parse(t, 1, abc, limit+"{a: 1, b: 1, c: 1}"),
		documents.Parse(t, 2, abc, limit+"{a: 1, b: 1, c: 1}"),
		documents.Parse(t, 2, abc, limit+"{a: 1, b: 1, c: 7}"),
		documents.Parse(t, 3, abc, limit+"{a: 1, b: 1, c: 1}")
	a, err := barrier.Of(one).Learn(two)
	if err != nil || a.String() != one.Epoch().String()+"+"+two.Epoch().String() {
		t.Fatalf("%v, %v", a, err)
	}
	if _, err := a.Learn(other); !errors.Is(err, barrier.ErrConflict) {
		t.Errorf("another of the newest version: %v", err)
	}
	if b, err := a.Learn(three); err != nil {
		t.Error(err)
	} else if c, err := b.Learn(other); err != nil || len(c.Documents()) != 4 || c.Newest() != three {
		t.Errorf("another of a version between: %v, %v", c, err)
	} else if _, err := c.From(2).Learn(one); !errors.Is(err, barrier.ErrOlder) {
		t.Errorf("older than the base: %v", err)
	}
}

// TestARegionIsNotLeftOut: the newest document knows every region of all, or is not taken. One that
// is older than the newest may leave out what that one knows.
func TestARegionIsNotLeftOut(t *testing.T) {
	const all = "name: l, limit: 900, window: 1s"
	ab, typo := []string{"a: {weight: 1}", "b: {weight: 1}"}, []string{"a: {weight: 1}", "bb: {weight: 1}", "c: {weight: 1}"}
	removing := func(version int, regions []string, names string) *policy.Document {
		return documents.With(t, "removed: ["+names+"]", documents.Parse(t, version, regions, all))
	}
	whole := func(version int) *policy.Document { return documents.Parse(t, version, abc, all) }
	for name, c := range map[string]struct {
		open  []*policy.Document
		next  *policy.Document
		taken bool
	}{
		"left out":                  {[]*policy.Document{whole(1)}, documents.Parse(t, 2, ab, all), false},
		"misspelt":                  {[]*policy.Document{whole(1)}, documents.Parse(t, 2, typo, all), false},
		"fenced before, left out":   {[]*policy.Document{documents.With(t, "fenced: [c]", whole(1))}, documents.Parse(t, 2, ab, all), false},
		"removed":                   {[]*policy.Document{whole(1)}, removing(2, ab, "c"), true},
		"another one removed":       {[]*policy.Document{whole(1)}, removing(2, ab, "d"), false},
		"removed, and then no word": {[]*policy.Document{removing(1, ab, "c")}, documents.Parse(t, 2, ab, all), false},
		"removed, and kept so":      {[]*policy.Document{removing(1, ab, "c")}, removing(2, ab, "c"), true},
		"removed, and back":         {[]*policy.Document{removing(1, ab, "c")}, whole(2), true},
		"removed at a missed one":   {[]*policy.Document{whole(1)}, removing(9, ab, "c, d"), true},
		"older, left out what the newest has": {[]*policy.Document{whole(1), whole(3)},
			documents.Parse(t, 2, ab, all), true},
		"older, with one that the newest lacks": {[]*policy.Document{whole(1), whole(3)},
			documents.Parse(t, 2, append([]string{"d: {weight: 1}"}, abc...), all), false},
		"what settles two that differ": {[]*policy.Document{whole(1), documents.Parse(t, 2, append([]string{"d: {weight: 1}"}, abc...), all)},
			removing(4, append([]string{"e: {weight: 1}"}, abc...), "d"), true},
	} {
		_, err := open(t, c.open...).Learn(c.next)
		if c.taken && err != nil || !c.taken && (!errors.Is(err, barrier.ErrLeftOut) || !barrier.Refused(err)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := barrier.Of(whole(1)).Learn(documents.Parse(t, 2, typo, all))
	if err == nil || !strings.Contains(err.Error(), `has region "b", and document 2-`) || !strings.Contains(err.Error(), "write removed: [b]") {
		t.Errorf("the error is %v", err)
	}
}

// TestAFarVersion asks for a word of its own.
func TestAFarVersion(t *testing.T) {
	at := func(version int) *policy.Document {
		return documents.Parse(t, version, abc, limit+"{a: 1, b: 1, c: 1}")
	}
	for _, c := range []struct {
		from, to int
		far      bool
	}{{1, 1 + policy.MaxStep, false}, {1, 2 + policy.MaxStep, true}, {1, policy.MaxVersion, true},
		{policy.MaxVersion, 1, false}, {policy.MaxVersion - 1, policy.MaxVersion, false}} {
		if err := policy.CheckStep(at(c.from), at(c.to)); errors.Is(err, policy.ErrFar) != c.far {
			t.Errorf("%d to %d: %v", c.from, c.to, err)
		}
	}
}

// open returns the agenda of documents that are open together.
func open(t documents.T, all ...*policy.Document) barrier.Agenda {
	t.Helper()
	a, err := barrier.Union(all...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return a
}
