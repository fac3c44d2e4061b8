package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const plansDocument = `
version: 1
regions: {eu: {weight: 1}}
domains:
  - {name: api, on_no_limit: deny}
limits:
  - {name: each, domain: api, key: [account], algorithm: fixed_window, limit: 100, window: 1m}
  - {name: pro, domain: api, key: [account], match: {plan: pro}, algorithm: fixed_window, limit: 100, window: 1m}
  - {name: free, domain: api, key: [account], match: {plan: free}, algorithm: fixed_window, limit: 100, window: 1m}
  - {name: by path, domain: api, entries: [{key: plan, value: internal}, {key: user}], algorithm: fixed_window, limit: 100, window: 1m}
exempt:
  - {domain: api, entries: [{key: plan, value: internal}]}
  - {domain: api, entries: [{key: account, value: "test-*"}], unlimited: true}
  - {domain: api, entries: [{key: plan, value: trial}, {key: account, value: "7"}], deny: true}
`

// TestExempt: limits with a key do not count requests that have the descriptors of an exemption,
// whatever else these have, as a map or as a list. Limits with entries go by their paths.
func TestExempt(t *testing.T) {
	m := mustParse(t, strings.Replace(plansDocument, "by path", "path", 1)).Compile()
	for _, tc := range []struct {
		request       string
		asMap, asList string // the limits that apply, and the exemption
		stray         string
	}{
		{"account=1", "each", "each", ""},
		{"account=1 plan=pro", "each pro", "each pro", ""},
		{"account=1 plan=gold", "each", "each", "plan"},
		{"account=1 plan=internal", "exempt", "exempt", ""},
		{"account=1 plan=internal other=x", "exempt", "exempt", ""},
		{"plan=internal user=5", "path exempt", "path", ""},
		{"user=5 plan=internal", "path exempt", "exempt", ""},
		{"account=test-7 plan=pro", "unlimited", "unlimited", ""},
		{"account=test-7 plan=gold", "unlimited", "unlimited", ""},
		{"account=7 plan=trial", "denied", "denied", ""},
		{"account=8 plan=trial", "each", "each", "plan"},
		{"account=test-8 plan=internal", "exempt", "exempt", ""}, // the first of the document
	} {
		var list []KeyValue
		descriptors := map[string]string{}
		for _, word := range strings.Fields(tc.request) {
			name, value, _ := strings.Cut(word, "=")
			list, descriptors[name] = append(list, KeyValue{name, value}), value
		}
		words := func(all []*Limit, e *Exemption) string {
			var words []string
			for _, l := range all {
				words = append(words, l.Name)
			}
			switch {
			case e == nil:
			case e.Deny:
				words = append(words, "denied")
			case e.Unlimited:
				words = append(words, "unlimited")
			default:
				words = append(words, "exempt")
			}
			return strings.Join(words, " ")
		}
		if got := words(m.Append(nil, "api", descriptors), m.Exempt("api", descriptors)); got != tc.asMap {
			t.Errorf("%s as a map: %s, want %s", tc.request, got, tc.asMap)
		}
		if got := words(m.AppendList(nil, "api", list)); got != tc.asList {
			t.Errorf("%s as a list: %s, want %s", tc.request, got, tc.asList)
		}
		if got := m.Stray("api", descriptors, nil); got != tc.stray {
			t.Errorf("%s as a map: stray %q, want %q", tc.request, got, tc.stray)
		}
		if got := m.Stray("api", nil, list); got != tc.stray {
			t.Errorf("%s as a list: stray %q, want %q", tc.request, got, tc.stray)
		}
	}
	allows := mustParse(t, strings.NewReplacer("by path", "path", "deny}\nlimits", "allow}\nlimits").Replace(plansDocument)).Compile()
	if got := allows.Stray("api", map[string]string{"account": "1", "plan": "gold"}, nil); got != "" {
		t.Errorf("%q is looked for where what meets no limit is allowed", got)
	}
}

// TestExemptAsATwin: the exemption that a request meets is found as by trying all.
func TestExemptAsATwin(t *testing.T) {
	names, values := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"", "x", "xy", "y"})
	suite.Check(t, func(t *rapid.T) {
		var x exempted
		all := make([]Exemption, rapid.IntRange(0, 6).Draw(t, "exemptions"))
		for i := range all {
			e := &all[i]
			e.Deny = rapid.Bool().Draw(t, "deny")
			for _, name := range rapid.SliceOfNDistinct(names, 1, 3, rapid.ID[string]).Draw(t, "names") {
				one := Entry{Name: name, Value: values.Draw(t, "value")}
				switch rapid.IntRange(0, 2).Draw(t, "kind") {
				case 0:
					one.Value, one.AnyValue = "", true
				case 1:
					one.Value, one.Pattern = one.Value+"*", true
				}
				e.Entries = append(e.Entries, one)
			}
			x.add(e, i)
		}
		request := rapid.MapOfN(names, values, 0, 3).Draw(t, "request")
		want := -1
		for i, e := range all {
			met := !slices.ContainsFunc(e.Entries, func(one Entry) bool {
				value, ok := request[one.Name]
				return !ok || !one.Fits(value)
			})
			if met && (want < 0 || e.Deny && !all[want].Deny) {
				want = i
			}
		}
		var list []KeyValue
		for _, name := range slices.Sorted(maps.Keys(request)) {
			list = append(list, KeyValue{name, request[name]})
		}
		for _, got := range []*Exemption{x.meets(described{byName: request}), x.meets(described{list: list})} {
			if (got == nil) != (want < 0) || got != nil && got != &all[want] {
				t.Fatalf("%v meets %s, want %d of %s", request, fmt.Sprint(got), want, fmt.Sprint(all))
			}
		}
	})
}
