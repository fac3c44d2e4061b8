package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
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
	minute := BucketRef{"api", "minute", FixedWindow, time.Minute, "", []KeyValue{{"account", "42"}},
		nil, false}
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
		suite.Must(t, err)
		if l, ok := m.Entry(ref); !ok || l != won[0] {
			t.Errorf("plan %s: Entry(%+v) = %v, %v, want limits[%d]", plan, ref, l, ok, i)
		}
	}
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

// TestMatchingDoesNotAllocate: entries are found and the IDs of their buckets made in memory that
// is given, for the largest requests and by a long value, too.
func TestMatchingDoesNotAllocate(t *testing.T) {
	descriptors := map[string]string{"account": "t77", "address": strings.Repeat("a", 256),
		"path": "/login", "plan": "pro"}
	for i := len(descriptors); i < 16; i++ {
		descriptors[fmt.Sprintf("unused%d", i)] = "x"
	}
	for name, c := range map[string]struct {
		document, domain string
		descriptors      map[string]string
		want             []quantity.Units
	}{
		"many values": {tenantDocument(500), "api", descriptors,
			[]quantity.Units{5, 1000, 500, 78}},
		"many descriptors": {crowdDocument(5, 100), "d", crowdRequest,
			[]quantity.Units{1, 1, 1, 1, 1}},
	} {
		m := mustParse(t, c.document).Compile()
		found := make([]*Limit, 0, 8)
		id := make([]byte, 0, MaxBucketIDBytes)
		allocs := testing.AllocsPerRun(100, func() {
			found = m.Append(found[:0], c.domain, c.descriptors)
			for _, l := range found {
				id = l.AppendBucket(id[:0], c.descriptors)
			}
		})
		if !slices.Equal(limitsOf(found), c.want) {
			t.Errorf("%s: limits %v, want %v", name, limitsOf(found), c.want)
		}
		if allocs != 0 {
			t.Errorf("%s: %v allocations a request, want none", name, allocs)
		}
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
