package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/strictyaml"
)

// rule is an entry of a random document, as simple as possible.
type rule struct {
	domain, name string
	key          []string
	match        map[string]string
}

func (r rule) matches(q request) bool {
	if r.domain != q.domain {
		return false
	}
	for _, name := range r.key {
		if _, ok := q.descriptors[name]; !ok {
			return false
		}
	}
	for name, value := range r.match {
		if got, ok := q.descriptors[name]; !ok || got != value {
			return false
		}
	}
	return true
}

func (r rule) rivals(other rule) bool { return r.domain == other.domain && r.name == other.name }

// request is what Append is asked about.
type request struct {
	domain      string
	descriptors map[string]string
}

// winners is the simple twin of Append. For each name it returns the rules with the most
// conditions, in the order of the rules. It reports a tie if the request meets two rules of one
// name with equally many conditions, even if a third wins over both, because removing that one must
// not make the document invalid.
func winners(rules []rule, q request) (indexes []int, tie bool) {
	var matching []int
	for i, r := range rules {
		if r.matches(q) {
			matching = append(matching, i)
		}
	}
	for _, i := range matching {
		best := true
		for _, j := range matching {
			if i == j || !rules[i].rivals(rules[j]) {
				continue
			}
			best = best && len(rules[j].match) <= len(rules[i].match)
			tie = tie || len(rules[j].match) == len(rules[i].match)
		}
		if best {
			indexes = append(indexes, i)
		}
	}
	return indexes, tie
}

func ambiguous(rules []rule, requests []request) bool {
	return slices.ContainsFunc(requests, func(q request) bool {
		_, tie := winners(rules, q)
		return tie
	})
}

// allRequests are all requests of two domains, each descriptor with one of two values or absent.
func allRequests(names ...string) []request {
	requests := []request{{"d", nil}, {"e", nil}}
	for _, name := range names {
		for _, q := range slices.Clone(requests) {
			for _, value := range []string{"1", "2"} {
				with := map[string]string{name: value}
				maps.Copy(with, q.descriptors)
				requests = append(requests, request{q.domain, with})
			}
		}
	}
	return requests
}

func document(rules []rule) string {
	var b strings.Builder
	b.WriteString("version: 1\nregions: {eu: {weight: 1}}\nlimits:\n")
	for i, r := range rules {
		var match []string
		for name, value := range r.match {
			match = append(match, fmt.Sprintf("%s: %q", name, value))
		}
		fmt.Fprintf(&b, "- {name: %s, domain: %s, key: [%s], match: {%s}, "+
			"algorithm: fixed_window, limit: %d, window: 1m}\n", r.name, r.domain,
			strings.Join(r.key, ", "), strings.Join(match, ", "), i+1)
	}
	return b.String()
}

// drawRules draws entries on the descriptors: of few names or many, with one key for all names or
// one for each.
func drawRules(t *rapid.T, descriptors []string) []rule {
	key := rapid.SliceOfNDistinct(rapid.SampledFrom(descriptors), 1, 3, rapid.ID[string])
	match := rapid.MapOfN(rapid.SampledFrom(descriptors), rapid.SampledFrom([]string{"1", "2"}),
		0, 3)
	var named []rule
	one := key.Draw(t, "the key of all")
	for i := range rapid.IntRange(1, 12).Draw(t, "names") {
		r := rule{domain: "d", name: fmt.Sprintf("n%d", i), key: one}
		if rapid.IntRange(0, 4).Draw(t, "another domain") == 0 {
			r.domain, r.name = "e", "n0"
		}
		if !slices.ContainsFunc(named, r.rivals) {
			if rapid.Bool().Draw(t, "its own key") {
				r.key = key.Draw(t, "key")
			}
			named = append(named, r)
		}
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rule {
		r := rapid.SampledFrom(named).Draw(t, "name")
		r.match = match.Draw(t, "match")
		return r
	}), 1, 20).Draw(t, "rules")
}

// TestMatcherAgainstTwin compares loading and matching with exhaustive search. A document is
// refused if and only if some request is a tie. An accepted one gives every request the winners of
// the twin, and the bucket of a winner leads back to the winner.
func TestMatcherAgainstTwin(t *testing.T) {
	descriptors := []string{"k", "p", "q", "r"}
	requests := allRequests(descriptors...)
	suite.Check(t, func(t *rapid.T) {
		rules := drawRules(t, descriptors)
		if ambiguous(rules, requests) {
			var errs strictyaml.Errors
			if _, err := Parse("limits.yaml", []byte(document(rules))); !errors.As(err, &errs) {
				t.Fatalf("a document with a tie gave %v", err)
			}
			rules = withoutTies(rules, requests)
		}
		doc, err := Parse("limits.yaml", []byte(document(rules)))
		if err != nil {
			t.Fatalf("a document without a tie was refused: %v", err)
		}
		m := doc.Compile()
		for _, q := range requests {
			var got []int
			for _, l := range m.Append(nil, q.domain, q.descriptors) {
				got = append(got, l.Index)
				ref, err := ParseBucketID(l.Bucket(q.descriptors))
				if e, ok := m.Entry(ref); err != nil || !ok || e != l {
					t.Fatalf("request %v: the bucket of limits[%d] is %+v, %v, and leads to %v, %v",
						q, l.Index, ref, err, e, ok)
				}
			}
			if want, _ := winners(rules, q); !slices.Equal(got, want) {
				t.Fatalf("request %v: entries %v, want %v", q, got, want)
			}
		}
	})
}

// withoutTies leaves out the rules that tie with one before them.
func withoutTies(rules []rule, requests []request) []rule {
	var kept []rule
	for _, r := range rules {
		if !ambiguous(append(slices.Clone(kept), r), requests) {
			kept = append(kept, r)
		}
	}
	return kept
}

// TestEntriesOfOthersAreLeftAtTheRoot: each of 990 entries requires two descriptors that a request
// carries, and one that it does not. The request visits the root alone, and the way to the one
// entry that applies.
func TestEntriesOfOthersAreLeftAtTheRoot(t *testing.T) {
	var rules []rule
	carried := map[string]string{}
	for a := range 12 {
		carried[fmt.Sprintf("c%d", a)] = "1"
		for b := range a {
			for other := range 15 {
				rules = append(rules, rule{"d", fmt.Sprintf("n%d", len(rules)),
					[]string{fmt.Sprintf("c%d", a), fmt.Sprintf("c%d", b)},
					map[string]string{fmt.Sprintf("other%d", b%2*15+other): "1"}})
			}
		}
	}
	rules = append(rules, rule{"d", "applies", []string{"c3"}, map[string]string{"c5": "1"}})
	m := mustParse(t, document(rules)).Compile()
	got := m.Append(nil, "d", carried)
	if len(got) != 1 || got[0].Name != "applies" {
		t.Errorf("%d entries apply: %v", len(got), got)
	}
	d := m.domains["d"]
	if n := visited(&d.root, d.appendMet(nil, carried)); n != 3 {
		t.Errorf("%d nodes were visited, want 3", n)
	}
}

// visited returns how many nodes a request visits that meets these requirements.
func visited(n *node, met []int32) int {
	visits := 1
	for i, number := range n.numbers {
		if slices.Contains(met, number) {
			visits += visited(n.next[i], met)
		}
	}
	return visits
}
