package policy

import (
	"slices"
	"strings"
	"testing"
)

const pathsDocument = `
version: 1
regions: {eu: {weight: 1}}
on_no_limit: warn
domains:
  - {name: web, on_no_limit: deny}
  - {name: db, descriptors: apart}
exempt:
  - {domain: db, entries: [{key: database, value: internal}], unlimited: true}
  - {domain: db, entries: [{key: database, value: users}, {key: user, value: root}]}
limits:
  - {name: any, domain: db, entries: [{key: database}], algorithm: fixed_window, limit: 1, window: 1m}
  - {name: users, domain: db, entries: [{key: database, value: users}], algorithm: fixed_window, limit: 2, window: 1m}
  - {name: each-user, domain: db, entries: [{key: database, value: users}, {key: user}], algorithm: fixed_window, limit: 3, window: 1m}
  - {name: ab, domain: db, entries: [{key: database, value: ab*}], algorithm: fixed_window, limit: 4, window: 1m}
  - {name: a, domain: db, entries: [{key: database, value: a*, shared: true}], algorithm: fixed_window, limit: 5, window: 1m}
  - {name: twice, domain: db, entries: [{key: generic_key, value: x}, {key: generic_key}], algorithm: fixed_window, limit: 6, window: 1m}
  - {name: turned, domain: db, entries: [{key: user}, {key: database}], algorithm: fixed_window, limit: 7, window: 1m}
  - {name: inner, domain: db, entries: [{key: one, value: v}, {key: two}], algorithm: fixed_window, limit: 8, window: 1m}
  - {name: outer, domain: db, entries: [{key: one}, {key: three}], algorithm: fixed_window, limit: 9, window: 1m}
  - {name: map, domain: db, key: [user], match: {generic_key/2: y}, algorithm: fixed_window, limit: 10, window: 1m}
`

// list makes "a=1 b=2" a list of descriptors.
func list(text string) (all []KeyValue) {
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		all = append(all, KeyValue{name, value})
	}
	return all
}

func TestListsWalkThePaths(t *testing.T) {
	m := mustParse(t, pathsDocument).Compile()
	for text, want := range map[string]string{
		"":                                 "",
		"database=other":                   "any database=other",
		"database=users":                   "users database=users",
		"database=users user=7":            "each-user user=7",
		"database=users user=root":         "exempt",
		"database=internal":                "unlimited",
		"database=other user=7":            "", // too deep
		"database=abc":                     "ab database=abc",
		"database=ac":                      "a database=a*",
		"database=a":                       "a database=a*",
		"user=7 database=users":            "turned user=7 database=users",
		"generic_key=x generic_key=z":      "twice generic_key/2=z",
		"generic_key=y generic_key=z":      "",
		"one=v two=1":                      "inner two=1",
		"one=v three=1":                    "", // the walk does not go back to the other one
		"one=w three=1":                    "outer one=w three=1",
		"generic_key=x generic_key=y user": "map user=",
		"Database=users":                   "",
	} {
		found, exempt := m.AppendList(nil, "db", list(text))
		var words []string
		for _, l := range found {
			ref, err := ParseBucketID(BucketID(l.AppendBucketOf(nil, list(text))))
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if of, ok := m.Entry(ref); !ok || of != l {
				t.Errorf("%q: the bucket belongs to no entry", text)
			}
			words = append(words, ref.Name)
			for _, kv := range ref.Key {
				words = append(words, kv.Name+"="+kv.Value)
			}
		}
		switch {
		case exempt != nil && exempt.Unlimited:
			words = append(words, "unlimited")
		case exempt != nil:
			words = append(words, "exempt")
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%q meets %q, want %q", text, got, want)
		}
	}
}

// A map has no order, so it is taken in each order that the document has for its names.
func TestMapsWalkThePathsInTheDocumentsOrders(t *testing.T) {
	m := mustParse(t, pathsDocument).Compile()
	for text, want := range map[string][]string{
		"database=users user=7":       {"each-user", "turned"},
		"user=7 database=other":       {"turned"},
		"database=users":              {"users"},
		"three=1 one=w":               {"outer"},
		"generic_key=x":               nil,
		"database=users user=7 more=": nil,
	} {
		descriptors := map[string]string{}
		for _, d := range list(text) {
			descriptors[d.Name] = d.Value
		}
		var names []string
		for _, l := range m.Append(nil, "db", descriptors) {
			names = append(names, l.Name)
			ordered := make([]KeyValue, len(l.Entries))
			for i, e := range l.Entries {
				ordered[i] = KeyValue{e.Name, descriptors[e.Name]}
			}
			if got, want := l.Bucket(descriptors), BucketID(l.AppendBucketOf(nil, ordered)); got != want {
				t.Errorf("%q: bucket %q of the map, %q of the list", text, got, want)
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("%q meets %q, want %q", text, names, want)
		}
	}
}

func TestDomainRules(t *testing.T) {
	d := mustParse(t, pathsDocument)
	for name, want := range map[string]DomainRules{
		"web":   {"web", NoLimitDeny, DecideTogether, IgnoreHits},
		"db":    {"db", NoLimitWarn, DecideApart, IgnoreHits},
		"other": {"other", NoLimitWarn, DecideTogether, IgnoreHits},
	} {
		if got := d.Domain(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if got, known := d.Compile().Domain(name); got != want || known != (name != "other") {
			t.Errorf("%s: the matcher has %+v, known %v", name, got, known)
		}
	}
}

// Whatever a document says of paths and domains is part of its epoch.
func TestPathsArePartOfTheEpoch(t *testing.T) {
	seen := map[Epoch]string{mustParse(t, pathsDocument).Epoch(): "as it is"}
	for _, change := range [][2]string{
		{"on_no_limit: warn", "on_no_limit: allow"},
		{"descriptors: apart", "descriptors: together"},
		{"descriptors: apart", "descriptors: apart, negative_hits: give_back"},
		{"value: internal}", "value: external}"},
		{", unlimited: true", ""},
		{", unlimited: true", ", deny: true"},
		{"shared: true", "shared: false"},
		{"value: ab*", "value: ab"},
		{"{key: user}, {key: database}", "{key: database}, {key: user}"},
		{"name: any,", "name: any, alias: all,"},
		{"name: any,", "name: any, replaces: [users],"},
		{"name: any,", "name: any, alternative: true,"},
	} {
		text := strings.Replace(pathsDocument, change[0], change[1], 1)
		epoch := mustParse(t, text).Epoch()
		if before, same := seen[epoch]; same {
			t.Errorf("%q has the epoch of %q", change, before)
		}
		seen[epoch] = change[1]
	}
}
