//go:build !race

package barrier_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
)

// previewed returns the changes as text: +, - or nothing and the name, and if it is open, whose
// acknowledgement is needed and until when.
func previewed(t *testing.T, older, newer *policy.Document, at quantity.StoreTime) string {
	t.Helper()
	changes, err := barrier.Preview(older, newer, at)
	suite.Must(t, err)
	var all []string
	for _, c := range changes {
		var text string
		switch {
		case c.Older == nil:
			text = "+" + c.Newer.Name
		case c.Newer == nil:
			text = "-" + c.Older.Name
		default:
			text = c.Newer.Name
		}
		if c.Open {
			text += fmt.Sprintf(" %v until %d", c.Waiting, c.Until)
		} else if c.Until != at {
			text += " ends without being open"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func TestPreview(t *testing.T) {
	two, ab := abc[:2], "name: l, limit: 900, window: 1s, weights: {a: 1, b: 1, c: 1}"
	for name, c := range map[string]struct {
		older, newer *policy.Document
		want         string
	}{
		"nothing": {documents.Parse(t, 1, abc, ab), documents.Parse(t, 2, abc, ab), "l"},
		"what is no term": {documents.Parse(t, 1, abc, ab),
			documents.Parse(t, 2, abc, ab+", on_store_failure: deny, borrowing_limit: 0"), "l"},
		"a share moves": {documents.Parse(t, 1, abc, limit+"{a: 4, b: 2, c: 3}"),
			documents.Parse(t, 2, abc, limit+"{a: 2, b: 4, c: 3}"), "l [a] until 2000000"},
		"a raise of three": {documents.Parse(t, 1, abc, ab),
			documents.Parse(t, 2, abc, strings.Replace(ab, "900", "1200", 1)), "l [] until 5"},
		"a raise of two": {documents.Parse(t, 1, two, "name: l, limit: 900, window: 1s"),
			documents.Parse(t, 2, two, "name: l, limit: 1200, window: 1s"), "l [a b] until 5"},
		"a fenced region": {documents.Parse(t, 1, abc, ab),
			documents.With(t, "fenced: [c]", documents.Parse(t, 2, abc, ab)), "l [a b] until 2000000"},
		"one more": {documents.Parse(t, 1, abc, ab), documents.Parse(t, 2, abc, ab,
			"name: m, limit: 1, window: 1s"), "l; +m"},
		"one more, with parts that differ": {documents.Parse(t, 1, abc, ab), documents.Parse(t, 2, abc, ab,
			"name: m, limit: 90, window: 1s, weights: {a: 2, b: 1, c: 1}"), "l; +m [a b c] until 5"},
		"one less": {documents.Parse(t, 1, abc, ab, "name: m, limit: 1, window: 1s"),
			documents.Parse(t, 2, abc, ab), "l; -m [a b c] until 2000000"},
		"another window": {documents.Parse(t, 1, abc, ab), documents.Parse(t, 2, abc,
			strings.Replace(ab, "1s", "2s", 1)), "+l; -l [a b c] until 2000000"},
		"a region leaves": {documents.Parse(t, 1, abc, "name: l, limit: 900, window: 1s"),
			documents.With(t, "removed: [c]", documents.Parse(t, 2, two, "name: l, limit: 600, window: 1s")),
			"l [a b c] until 2000000"},
	} {
		if got := previewed(t, c.older, c.newer, 5); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	older := documents.Parse(t, 2, abc, ab)
	if _, err := barrier.Preview(older, documents.Parse(t, 1, abc, ab), 5); !errors.Is(err, barrier.ErrOlder) {
		t.Errorf("a document of a lower version: %v", err)
	}
	if _, err := barrier.Preview(older, documents.Parse(t, 2, abc, limit+"{a: 1, b: 1, c: 2}"), 5); !errors.Is(err, barrier.ErrConflict) {
		t.Errorf("another document of the version: %v", err)
	}
}

// TestPreviewNamesWhomItNeeds: a limit stays open exactly while one of those that the preview names
// has not acknowledged, or no majority has.
func TestPreviewNamesWhomItNeeds(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		draw := func(version int) *policy.Document {
			weight := rapid.IntRange(0, 3)
			return documents.Parse(t, version, abc, fmt.Sprintf(
				"name: l, limit: %d, window: 1s, weights: {a: %d, b: %d, c: 1}",
				rapid.SampledFrom([]int{300, 900, 901}).Draw(r, "limit"), weight.Draw(r, "a"), weight.Draw(r, "b")))
		}
		older, newer := draw(1), draw(2)
		changes, err := barrier.Preview(older, newer, 5)
		suite.Must(t, err)
		h, got := barrier.Heard{}, 0
		needed := map[string]bool{}
		for _, region := range changes[0].Waiting {
			needed[region] = true
		}
		for _, region := range []string{"a", "b", "c"} {
			if rapid.Bool().Draw(r, region+" acknowledged") {
				h.Add(region, newer.Epoch(), 5)
				delete(needed, region)
				got++
			}
		}
		want := changes[0].Open && (len(needed) > 0 || got < 2)
		s := standing(t, changes[0].Until, h, older, newer)
		if s.Open() != want {
			r.Fatalf("open: %v; the preview %+v, %d acknowledged, %v missing", s.Open(), changes[0], got, needed)
		}
	})
}
