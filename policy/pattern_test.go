package policy

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// asExpression returns a pattern as a regular expression.
func asExpression(pattern string) *regexp.Regexp {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, `.*`) + `$`)
}

var (
	patternTexts = rapid.StringOfN(rapid.SampledFrom([]rune("ab*é")), 0, 9, -1)
	valueTexts   = rapid.StringOfN(rapid.SampledFrom([]rune("abé\n")), 0, 9, -1)
)

func TestAPatternFitsWhatItsExpressionMatches(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		pattern, value := patternTexts.Draw(t, "pattern"), valueTexts.Draw(t, "value")
		e := NewEntry("a", pattern)
		if got, want := e.Fits(value), asExpression(pattern).MatchString(value); got != want {
			t.Fatalf("%q fits %q: %v, want %v", value, pattern, got, want)
		}
	})
}

// TestPatternsMeetWhereAValueFitsBoth: two patterns with p and q letters that meet do so at a value
// of at most p+q letters, so all of these are tried.
func TestPatternsMeetWhereAValueFitsBoth(t *testing.T) {
	short := rapid.StringOfN(rapid.SampledFrom([]rune("ab*")), 0, 5, -1)
	suite.Check(t, func(t *rapid.T) {
		a, b := NewEntry("a", short.Draw(t, "a")), NewEntry("a", short.Draw(t, "b"))
		want := false
		for length := 0; length <= len(a.Value)+len(b.Value) && !want; length++ {
			for bits := range 1 << length {
				value := make([]byte, length)
				for i := range value {
					value[i] = "ab"[bits>>i&1]
				}
				want = want || a.Fits(string(value)) && b.Fits(string(value))
			}
		}
		if a.Meets(b) != want || b.Meets(a) != want {
			t.Fatalf("%q meets %q: %v and %v, want %v", a.Value, b.Value, a.Meets(b), b.Meets(a), want)
		}
	})
	any := Entry{Name: "a", AnyValue: true}
	if !any.Meets(NewEntry("a", "x*")) || !NewEntry("a", "x").Meets(any) || any.Meets(Entry{Name: "b", AnyValue: true}) {
		t.Error("an entry for any value meets each of its name, and no other")
	}
}

// TestInnerPatternsAreMatched: a * may stand anywhere in a value. A value itself goes before
// patterns, and of patterns the first of the document.
func TestInnerPatternsAreMatched(t *testing.T) {
	m := mustParse(t, `
version: 1
regions: {eu: {weight: 1}}
exempt:
  - {domain: web, entries: [{key: path, value: "*/health"}], unlimited: true}
limits:
  - {name: users, domain: web, entries: [{key: path, value: /users/*/orders/*, shared: true}], algorithm: fixed_window, limit: 1, window: 1m}
  - {name: user, domain: web, entries: [{key: path, value: /users/*}], algorithm: fixed_window, limit: 1, window: 1m}
  - {name: one, domain: web, entries: [{key: path, value: /users/1/orders/1}], algorithm: fixed_window, limit: 1, window: 1m}
`).Compile()
	for value, want := range map[string]string{
		"/users/1/orders/1": "one", "/users/2/orders/": "users", "/users/2/orders": "user",
		"/a/health": "exempt", "/users/health": "user", "/orders": "",
	} {
		found, exempt := m.AppendList(nil, "web", []KeyValue{{"path", value}})
		got := ""
		if exempt != nil {
			got = "exempt"
		}
		for _, l := range found {
			got += l.Name
			if id := string(l.AppendBucketOf(nil, []KeyValue{{"path", value}})); strings.Contains(id, value) == (l.Name == "users") {
				t.Errorf("%s: bucket %q", value, id)
			}
		}
		if got != want {
			t.Errorf("%s meets %q, want %q", value, got, want)
		}
	}
}

// TestNamesOfAnyLanguage: a domain and a descriptor may have letters of any language, and neither
// what separates names from values nor *.
func TestNamesOfAnyLanguage(t *testing.T) {
	for name, want := range map[string]bool{
		"größe": true, "账户": true, "e\u0301": true, "٣": true, "a+b|{c}": true, "x/y": true,
		"": false, "a b": false, "a=b": false, "a*": false, `a"b`: false, `a\b`: false, "a,b": false, "a\u200bb": false,
		"a\x00": false, "\xff": false, strings.Repeat("界", 21): true, strings.Repeat("界", 22): false,
	} {
		if IsName(name) != want {
			t.Errorf("%q is a name: %v, want %v", name, !want, want)
		}
	}
}

// TestRepeatedNamesOfFullLength: an entry that repeats the longest name has a longer one in buckets,
// which other regions can read.
func TestRepeatedNamesOfFullLength(t *testing.T) {
	name := strings.Repeat("n", MaxNameBytes)
	m := mustParse(t, `
version: 1
regions: {eu: {weight: 1}}
limits:
  - {name: twice, domain: web, entries: [{key: `+name+`}, {key: `+name+`, value: x}], algorithm: fixed_window, limit: 1, window: 1m}
`).Compile()
	asked := []KeyValue{{name, "1"}, {name, "x"}}
	found, _ := m.AppendList(nil, "web", asked)
	if len(found) != 1 {
		t.Fatalf("%d limits apply, want 1", len(found))
	}
	ref, err := ParseBucketID(BucketID(found[0].AppendBucketOf(nil, asked)))
	if err != nil {
		t.Fatal(err)
	}
	if of, ok := m.Entry(ref); !ok || of != found[0] {
		t.Errorf("the bucket %+v belongs to no entry", ref)
	}
}
