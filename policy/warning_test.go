package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

const warnedDocument = `
version: 1
regions: {eu: {weight: 1}, us: {weight: 1}}
limits:
- {name: a, domain: api, key: [k], algorithm: leaky_bucket, limit: 9, window: 10ms, burst: 3, on_exhausted: borrow, lending_limit: 0}
- {name: b, domain: api, key: [k], algorithm: fixed_window, limit: 3, window: 10ms, on_store_failure: allow}
`

func TestHome(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit Limit
		home  bool
	}{
		{"two for each", Limit{Algorithm: FixedWindow, Limit: 6, Weights: []quantity.Units{1, 5,
			2}}, false},
		{"one less", Limit{Algorithm: FixedWindow, Limit: 5, Weights: []quantity.Units{1, 5, 2}},
			true},
		{"a region without weight", Limit{Algorithm: SlidingWindowLog, Limit: 4,
			Weights: []quantity.Units{1, 0, 2}}, false},
		{"one region with weight", Limit{Algorithm: TokenBucket, Limit: 1, Burst: 1,
			Weights: []quantity.Units{0, 7, 0}}, false},
		{"burst of no bucket", Limit{Algorithm: SlidingWindowCounter, Limit: 4, Burst: 0,
			Weights: []quantity.Units{1, 1}}, false},
		{"two of a burst for each", Limit{Algorithm: TokenBucket, Limit: 100, Burst: 4,
			Weights: []quantity.Units{1, 1}}, false},
		{"one less of a burst", Limit{Algorithm: TokenBucket, Limit: 100, Burst: 3,
			Weights: []quantity.Units{1, 1}}, true},
		{"one less in a queue", Limit{Algorithm: LeakyBucket, Limit: 100, Burst: 3,
			Weights: []quantity.Units{1, 1}}, true},
		{"a burst above a small limit", Limit{Algorithm: LeakyBucket, Limit: 3, Burst: 100,
			Weights: []quantity.Units{1, 1}}, true},
	} {
		if got := c.limit.Home(); got != c.home {
			t.Errorf("%s: %v, want %v", c.name, got, c.home)
		}
	}
}

// TestWarningsAreTheCallers: a caller may change what Warnings returned.
func TestWarningsAreTheCallers(t *testing.T) {
	doc := mustParse(t, warnedDocument)
	before := doc.Warnings()
	if len(before) != 6 {
		t.Fatalf("%d warnings, want 6: %v", len(before), before)
	}
	clear(doc.Warnings())
	if after := doc.Warnings(); !slices.Equal(after, before) {
		t.Errorf("got %v, want %v", after, before)
	}
}

// TestWarningsAreNoPartOfTheEpoch parses the text of Source under another file name. Warnings show
// the name, epochs do not.
func TestWarningsAreNoPartOfTheEpoch(t *testing.T) {
	doc := mustParse(t, warnedDocument)
	other, err := Parse("other.yaml", doc.Source())
	suite.Must(t, err)
	if slices.Equal(doc.Warnings(), other.Warnings()) || doc.Epoch() != other.Epoch() {
		t.Errorf("warnings %v and %v in epochs %s and %s", doc.Warnings(), other.Warnings(),
			doc.Epoch(), other.Epoch())
	}
}

// TestWarningsAreBounded reads a document with more warnings than the report may have.
func TestWarningsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\nregions: {eu: {weight: 1}, us: {weight: 1}}\nlimits:\n")
	for _, first := range "abcdefghijklmnopqrstuvwxyz" {
		for _, second := range "abcdefghijklmnopqrst" {
			b.WriteString("- {name: " + string(first) + string(second) +
				", domain: api, key: [k], algorithm: fixed_window, limit: 1, window: 10ms}\n")
		}
	}
	warnings := mustParse(t, b.String()).Warnings()
	if last := warnings[len(warnings)-1]; len(warnings) != strictyaml.MaxErrors ||
		last.Pos.Line != 3+(strictyaml.MaxErrors+2)/3 {
		t.Errorf("%d warnings, the last in line %d, want the first %d", len(warnings),
			last.Pos.Line, strictyaml.MaxErrors)
	}
}

func TestReserve(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit Limit
		want  PPM
	}{
		{"none", Limit{Algorithm: FixedWindow, Limit: 100, Weights: []quantity.Units{1, 1}}, 0},
		{"some", Limit{Algorithm: FixedWindow, Limit: 4, Weights: []quantity.Units{1, 1},
			LocalReserve: 250_000}, 250_000},
		{"home mode", Limit{Algorithm: FixedWindow, Limit: 3, Weights: []quantity.Units{1, 1},
			LocalReserve: 250_000}, 0},
		{"home mode of a burst", Limit{Algorithm: TokenBucket, Limit: 100, Burst: 3,
			Weights: []quantity.Units{1, 1}, LocalReserve: PPMOne}, 0},
		{"one region", Limit{Algorithm: FixedWindow, Limit: 1, Weights: []quantity.Units{1, 0},
			LocalReserve: PPMOne}, PPMOne},
	} {
		if got := c.limit.Reserve(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestReserveIsNoPartOfTheBucket: two documents with different reserves have two epochs and the
// same buckets.
func TestReserveIsNoPartOfTheBucket(t *testing.T) {
	parse := func(more string) *Document {
		return mustParse(t, "version: 1\nregions: {eu: {weight: 1}}\nlimits:\n"+
			"- {name: a, domain: api, key: [k], algorithm: fixed_window, limit: 100, window: 1m"+
			more+"}\n")
	}
	none, zero, some := parse(""), parse(", local_reserve: 0"), parse(", local_reserve: 0.1")
	if none.Epoch() != zero.Epoch() || none.Epoch() == some.Epoch() {
		t.Errorf("epochs %s, %s and %s of no reserve, none and some", none.Epoch(), zero.Epoch(),
			some.Epoch())
	}
	request := map[string]string{"k": "42"}
	if one, two := none.Limits[0].Bucket(request), some.Limits[0].Bucket(request); one != two {
		t.Errorf("reserves 0 and 0.1 have the buckets %q and %q", one, two)
	}
}
