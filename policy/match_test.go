package policy

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

const matchDocument = `
version: 1
regions: {eu: {weight: 1}}
limits:
  - {name: minute, domain: api, key: [account], algorithm: fixed_window, limit: 100, window: 1m}
  - {name: login, domain: api, key: [account, address], match: {path: /login}, algorithm: fixed_window, limit: 5, window: 1m}
  - {name: hour, domain: api, key: [account], algorithm: fixed_window, limit: 1000, window: 1h}
  - {name: minute, domain: api, key: [account], match: {plan: pro}, algorithm: fixed_window, limit: 500, window: 1m}
  - {name: minute, domain: api, key: [account], match: {plan: pro, account: "42"}, algorithm: fixed_window, limit: 900, window: 1m}
  - {name: minute, domain: mail, key: [account], algorithm: fixed_window, limit: 7, window: 1m}
`

func TestAppend(t *testing.T) {
	m := mustParse(t, matchDocument).Compile()
	type descriptors = map[string]string
	for name, c := range map[string]struct {
		domain      string
		descriptors descriptors
		want        []quantity.Units // the limits of the entries, in order
	}{
		"key alone":      {"api", descriptors{"account": "1"}, []quantity.Units{100, 1000}},
		"no key":         {"api", descriptors{"plan": "pro"}, nil},
		"no descriptors": {"api", nil, nil},
		"part of a key":  {"api", descriptors{"address": "::1", "path": "/login"}, nil},
		"another value": {"api", descriptors{"account": "1", "plan": "free"},
			[]quantity.Units{100, 1000}},
		"empty value": {"api", descriptors{"account": "", "plan": ""},
			[]quantity.Units{100, 1000}},
		"condition": {"api", descriptors{"account": "1", "plan": "pro"},
			[]quantity.Units{1000, 500}},
		"more conditions": {"api", descriptors{"account": "42", "plan": "pro"},
			[]quantity.Units{1000, 900}},
		"composite key": {"api", descriptors{"account": "1", "address": "::1",
			"path": "/login"}, []quantity.Units{100, 5, 1000}},
		"all": {"api", descriptors{"account": "42", "address": "::1",
			"path": "/login", "plan": "pro"}, []quantity.Units{5, 1000, 900}},
		"other domain": {"mail", descriptors{"account": "42", "plan": "pro"},
			[]quantity.Units{7}},
		"no such domain":        {"web", descriptors{"account": "42"}, nil},
		"domain is not a limit": {"minute", descriptors{"account": "42"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := &Limit{Index: 99, Limit: -1}
			got := m.Append([]*Limit{before}, c.domain, c.descriptors)
			if got[0] != before {
				t.Fatal("Append moved what was there before")
			}
			if limits := limitsOf(got[1:]); !slices.Equal(limits, c.want) {
				t.Errorf("limits %v, want %v", limits, c.want)
			}
		})
	}
}

func limitsOf(entries []*Limit) []quantity.Units {
	var limits []quantity.Units
	for _, l := range entries {
		limits = append(limits, l.Limit)
	}
	return limits
}

func TestAppendPointsIntoTheDocument(t *testing.T) {
	doc := mustParse(t, matchDocument)
	got := doc.Compile().Append(nil, "mail", map[string]string{"account": "1"})
	if len(got) != 1 || got[0] != &doc.Limits[5] {
		t.Errorf("got %v, want the document's own limits[5]", got)
	}
}

func TestEntry(t *testing.T) {
	doc := mustParse(t, matchDocument)
	m := doc.Compile()
	minute := BucketRef{"api", "minute", FixedWindow, time.Minute, []KeyValue{{"account", "42"}},
		nil}
	with := func(change func(*BucketRef)) BucketRef {
		ref := minute
		change(&ref)
		return ref
	}
	for name, c := range map[string]struct {
		ref   BucketRef
		index int
	}{
		"no conditions": {minute, 0},
		"another name":  {with(func(r *BucketRef) { r.Name, r.Window = "hour", time.Hour }), 2},
		"one condition": {with(func(r *BucketRef) { r.Match = []Condition{{"plan", "pro"}} }), 3},
		"two conditions": {with(func(r *BucketRef) {
			r.Match = []Condition{{"account", "42"}, {"plan", "pro"}}
		}), 4},
		"another domain": {with(func(r *BucketRef) { r.Domain = "mail" }), 5},
	} {
		if l, ok := m.Entry(c.ref); !ok || l != &doc.Limits[c.index] {
			t.Errorf("%s: got %v, %v, want limits[%d]", name, l, ok, c.index)
		}
	}
	for name, ref := range map[string]BucketRef{
		"domain":     with(func(r *BucketRef) { r.Domain = "web" }),
		"name's key": with(func(r *BucketRef) { r.Name = "login" }),
		"name":       with(func(r *BucketRef) { r.Name = "day" }),
		"algorithm":  with(func(r *BucketRef) { r.Algorithm = TokenBucket }),
		"window":     with(func(r *BucketRef) { r.Window = time.Hour }),
		"key":        with(func(r *BucketRef) { r.Key = []KeyValue{{"address", "7"}} }),
		"longer key": with(func(r *BucketRef) {
			r.Key = append(slices.Clone(r.Key), KeyValue{"address", "7"})
		}),
		"value to match":  with(func(r *BucketRef) { r.Match = []Condition{{"plan", "free"}} }),
		"name to match":   with(func(r *BucketRef) { r.Match = []Condition{{"tier", "pro"}} }),
		"half of a match": with(func(r *BucketRef) { r.Match = []Condition{{"account", "42"}} }),
		"domain's match": with(func(r *BucketRef) {
			r.Domain, r.Match = "mail", []Condition{{"plan", "pro"}}
		}),
		"order of match": with(func(r *BucketRef) {
			r.Match = []Condition{{"plan", "pro"}, {"account", "42"}}
		}),
		"longer match": with(func(r *BucketRef) {
			r.Match = []Condition{{"account", "42"}, {"plan", "pro"}, {"zone", "x"}}
		}),
		"entry, unmatching": with(func(r *BucketRef) {
			r.Name, r.Key = "login", []KeyValue{{"account", "42"}, {"address", "::1"}}
		}),
	} {
		if l, ok := m.Entry(ref); ok {
			t.Errorf("another %s: got limits[%d]", name, l.Index)
		}
	}
}

// TestEntriesOfOneNameCountApart has a limit with three terms, two of them with the same number of
// units split in different ways. For one account each has its own bucket, which leads a peer back
// to the same entry. If they shared a bucket, rights lent under one limit would be borrowed rights
// under another.
func TestEntriesOfOneNameCountApart(t *testing.T) {
	doc := mustParse(t, `
version: 1
regions: {eu: {weight: 1}, us: {weight: 1}}
limits:
- {name: a, domain: d, key: [k], algorithm: fixed_window, limit: 1000, window: 1m}
- {name: a, domain: d, key: [k], match: {plan: pro}, algorithm: fixed_window, limit: 5000, window: 1m}
- name: a
  domain: d
  key: [k]
  match: {plan: trial}
  algorithm: fixed_window
  limit: 1000
  window: 1m
  weights: {eu: 2, us: 1}
  borrowing_limit: 1
  lending_limit: 0.5
  on_exhausted: borrow
  on_store_failure: deny
  shadow: true
`)
	m := doc.Compile()
	seen := make(map[BucketID]string)
	for i, plan := range []string{"free", "pro", "trial"} {
		descriptors := map[string]string{"k": "42", "plan": plan}
		won := m.Append(nil, "d", descriptors)
		if len(won) != 1 || won[0] != &doc.Limits[i] {
			t.Fatalf("plan %s: matched %v, want limits[%d]", plan, won, i)
		}
		id := won[0].Bucket(descriptors)
		if other, shared := seen[id]; shared {
			t.Errorf("plans %s and %s share the bucket %q", other, plan, id)
		}
		seen[id] = plan
		ref, err := ParseBucketID(id)
		if err != nil {
			t.Fatal(err)
		}
		if l, ok := m.Entry(ref); !ok || l != won[0] {
			t.Errorf("plan %s: Entry(%+v) = %v, %v, want limits[%d]", plan, ref, l, ok, i)
		}
	}
}

// rule is an entry of a random document, as simple as possible.
type rule struct {
	name  string
	match map[string]string
}

func (r rule) matches(request map[string]string) bool {
	if _, ok := request["k"]; !ok {
		return false
	}
	for name, value := range r.match {
		if got, ok := request[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// winners is the simple twin of Append. For each name it returns the rules with the most
// conditions, in the order of the rules. It reports a tie if the request meets two rules of one
// name with equally many conditions, even if a third wins over both, because removing that one must
// not make the document invalid.
func winners(rules []rule, request map[string]string) (indexes []int, tie bool) {
	for i, r := range rules {
		if !r.matches(request) {
			continue
		}
		best := true
		for j, other := range rules {
			if i == j || other.name != r.name || !other.matches(request) {
				continue
			}
			best = best && len(other.match) <= len(r.match)
			tie = tie || len(other.match) == len(r.match)
		}
		if best {
			indexes = append(indexes, i)
		}
	}
	return indexes, tie
}

// allRequests are all requests over three descriptors, two values and absence.
func allRequests() []map[string]string {
	requests := []map[string]string{{}, {"k": "1"}, {"k": "2"}}
	for _, name := range []string{"p", "q"} {
		for _, r := range slices.Clone(requests) {
			for _, value := range []string{"1", "2"} {
				with := map[string]string{name: value}
				for k, v := range r {
					with[k] = v
				}
				requests = append(requests, with)
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
		fmt.Fprintf(&b, "- {name: %s, domain: d, key: [k], match: {%s}, algorithm: fixed_window, limit: %d, window: 1m}\n",
			r.name, strings.Join(match, ", "), i+1)
	}
	return b.String()
}

// TestMatcherAgainstTwin compares loading and matching with exhaustive search. A document is
// refused if and only if some request is a tie. An accepted one gives every request the winners of
// the twin, and the bucket of a winner leads back to the winner.
func TestMatcherAgainstTwin(t *testing.T) {
	requests := allRequests()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom([]string{"1", "2"})
		rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rule {
			return rule{
				name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
				match: rapid.MapOfN(rapid.SampledFrom([]string{"k", "p", "q"}), value, 0, 3).Draw(t,
					"match"),
			}
		}), 1, 6).Draw(t, "rules")

		var want [][]int
		ambiguous := false
		for _, r := range requests {
			indexes, tie := winners(rules, r)
			want, ambiguous = append(want, indexes), ambiguous || tie
		}
		doc, err := Parse("limits.yaml", []byte(document(rules)))
		if ambiguous {
			var errs strictyaml.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("a document with a tie gave %v", err)
			}
			return
		}
		if err != nil {
			t.Fatalf("a document without a tie was refused: %v", err)
		}
		m := doc.Compile()
		for i, r := range requests {
			var got []int
			for _, l := range m.Append(nil, "d", r) {
				got = append(got, l.Index)
				ref, err := ParseBucketID(l.Bucket(r))
				if e, ok := m.Entry(ref); err != nil || !ok || e != l {
					t.Fatalf("request %v: the bucket of limits[%d] is %+v, %v, and leads to %v, %v",
						r, l.Index, ref, err, e, ok)
				}
			}
			if !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("request %v: entries %v, want %v", r, got, want[i])
			}
		}
	})
}

// tenantDocument has one limit with an entry for each of n tenants, and others
// beside it.
func tenantDocument(n int) string {
	var b strings.Builder
	b.WriteString(matchDocument[1:])
	for i := range n {
		fmt.Fprintf(&b, "  - {name: tenant, domain: api, key: [account], match: {account: \"t%d\"}, algorithm: fixed_window, limit: %d, window: 1m}\n", i, i+1)
	}
	return b.String()
}

func TestAppendDoesNotAllocate(t *testing.T) {
	m := mustParse(t, tenantDocument(500)).Compile()
	dst := make([]*Limit, 0, 8)
	descriptors := map[string]string{"account": "t77", "address": "::1", "path": "/login",
		"plan": "pro"}
	allocs := testing.AllocsPerRun(100, func() { dst = m.Append(dst[:0], "api", descriptors) })
	if want := []quantity.Units{5, 1000, 500, 78}; !slices.Equal(limitsOf(dst), want) {
		t.Errorf("limits %v, want %v", limitsOf(dst), want)
	}
	if allocs != 0 {
		t.Errorf("%v allocations a request, want none", allocs)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, tenants := range []int{0, 5000} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			m := mustParse(b, tenantDocument(tenants)).Compile()
			dst := make([]*Limit, 0, 8)
			descriptors := map[string]string{"account": "t77", "address": "::1", "path": "/login",
				"plan": "pro"}
			b.ReportAllocs()
			for b.Loop() {
				dst = m.Append(dst[:0], "api", descriptors)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	src := []byte(tenantDocument(5000))
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, err := Parse("limits.yaml", src); err != nil {
			b.Fatal(err)
		}
	}
}
