package authz

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const mapping = `
trusted: [127.0.0.1, 10.0.0.0/8, "fd00::/8"]
rules:
  - domain: login
    path: /login
    methods: [POST]
    host: Api.example.org
    descriptors:
      address: {client_address: true, v4_bits: 24, v6_bits: 64}
      session: {cookie: sid, optional: true}
  - domain: api
    path: /v1/
    descriptors:
      account: {header: X-Account}
      plan: {header: X-Plan, default: free}
      key: {query: key, optional: true}
      part: {path: 2}
      method: {method: true}
      kind: {value: fixed}
    cost: {header: X-Cost, max: 100}
  - domain: other
    path: /other
    descriptors: {path: {path: all}, host: {host: true}}
`

func parsed(t testing.TB, text string) *Mapping {
	t.Helper()
	m, err := Parse("authz.yaml", []byte(text))
	suite.Must(t, err)
	return m
}

// asked makes a request of a proxy at an address, from lines such as "X-Account: 42".
func asked(from string, lines ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/authz?deny=403", nil)
	r.RemoteAddr = from
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	for name, value := range map[string]string{"X-Forwarded-Method": "GET", "X-Forwarded-Host": "a.example"} {
		if r.Header.Get(name) == "" {
			r.Header.Set(name, value)
		}
	}
	return r
}

// said writes an outcome as "domain cost name=value ...".
func said(o Outcome, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	if !o.Ruled {
		return "no rule"
	}
	words := []string{o.Request.Domain, fmt.Sprint(o.Request.Cost)}
	for _, name := range slices.Sorted(maps.Keys(o.Request.Descriptors)) {
		words = append(words, fmt.Sprintf("%s=%s", name, o.Request.Descriptors[name]))
	}
	return strings.Join(words, " ")
}

func TestMap(t *testing.T) {
	m := parsed(t, mapping)
	const proxy = "10.1.2.3:4567"
	const uri = "X-Forwarded-Uri: /v1/items/7?key=k&x=%22"
	for name, c := range map[string]struct {
		r    *http.Request
		want string
	}{
		"a rule": {asked(proxy, uri, "X-Account: 42", "X-Forwarded-Method: PUT"),
			"api 1 account=42 key=k kind=fixed method=PUT part=/v1/items plan=free"},
		"a plan and a cost": {asked(proxy, "X-Forwarded-Uri: /v1/items/7", "X-Forwarded-Method: PUT", "X-Account: 42", "X-Plan: pro", "X-Cost: 100"),
			"api 100 account=42 kind=fixed method=PUT part=/v1/items plan=pro"},
		"a value is a value": {asked(proxy, uri, `X-Account: 4","plan":"pro`, "X-Plan: {header: X}"),
			`api 1 account=4","plan":"pro key=k kind=fixed method=GET part=/v1/items plan={header: X}`},
		"a path in many ways": {asked(proxy, "X-Forwarded-Uri: //v1/./a%2e%2e/../it%65ms/7/", "X-Account: 42"),
			"api 1 account=42 kind=fixed method=GET part=/v1/items plan=free"},
		"another host":              {asked(proxy, "X-Forwarded-Uri: /login", "X-Forwarded-Method: POST", "X-Forwarded-Host: example.com"), "no rule"},
		"a client's address":        {asked(proxy, "X-Forwarded-Uri: /login", "X-Forwarded-Method: POST", "X-Forwarded-Host: api.example.org:443", "X-Forwarded-For: 1.1.1.1, 203.0.113.9, 10.0.0.1"), "login 1 address=203.0.113.0/24"},
		"two lists of addresses":    {asked(proxy, "X-Forwarded-Uri: /login", "X-Forwarded-Method: POST", "X-Forwarded-Host: api.example.org", "X-Forwarded-For: 2.2.2.2", "X-Forwarded-For: 2001:db8::1, fd00::1", "Cookie: a=b; sid=77"), "login 1 address=2001:db8::/64 session=77"},
		"an address made up":        {asked(proxy, "X-Forwarded-Uri: /login", "X-Forwarded-Method: POST", "X-Forwarded-Host: api.example.org", "X-Forwarded-For: 1.1.1.1, nonsense"), "login 1 address=10.1.2.0/24"},
		"no address":                {asked(proxy, "X-Forwarded-Uri: /login", "X-Forwarded-Method: POST", "X-Forwarded-Host: api.example.org"), "login 1 address=10.1.2.0/24"},
		"a stranger":                {asked("203.0.113.5:1", uri, "X-Account: 42", "X-Forwarded-Method: PUT"), "error: path: is not known: 203.0.113.5 is no trusted proxy; add its address to trusted"},
		"all of a path":             {asked(proxy, "X-Forwarded-Uri: /other/a/b/", "X-Forwarded-Host: H:80"), "other 1 host=h path=/other/a/b/"},
		"nothing known":             {asked(proxy, uri), "error: descriptors.account: is missing: the request has no header X-Account; have the proxy send it, or give the descriptor a default"},
		"an empty header":           {asked(proxy, uri, "X-Account: "), "error: descriptors.account: is missing: the request has no header X-Account; have the proxy send it, or give the descriptor a default"},
		"a header twice":            {asked(proxy, uri, "X-Account: 1", "X-Account: 2"), "error: header X-Account: is given more than once; have the proxy replace it, not add to it"},
		"a URI twice":               {asked(proxy, uri, uri), "error: X-Forwarded-Uri: is given more than once; have the proxy replace it, not add to it"},
		"a proxy that says no path": {asked(proxy, "X-Account: 42"), "error: path: is not known: the proxy does not say it; have it set the header that the mapping names (forwarded)"},
		"below no path of a rule":   {asked(proxy, "X-Forwarded-Uri: /v1", "X-Account: 42"), "api 1 account=42 kind=fixed method=GET part=/v1 plan=free"},
		"beside the path":           {asked(proxy, "X-Forwarded-Uri: /v11/a", "X-Account: 42"), "no rule"},
		"no URI":                    {asked(proxy, "X-Forwarded-Uri: %zz"), "error: X-Forwarded-Uri: is no URI; have the proxy set it to the client's"},
		"a bad query":               {asked(proxy, "X-Forwarded-Uri: /v1/?a=%zz", "X-Account: 1"), "error: query: is malformed"},
		"too high a cost":           {asked(proxy, uri, "X-Account: 1", "X-Cost: 101"), "error: cost: header X-Cost must have one whole number from 1 to 100"},
		"a cost that is none":       {asked(proxy, uri, "X-Account: 1", "X-Cost: -1"), "error: cost: header X-Cost must have one whole number from 1 to 100"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := said(m.Map(c.r)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	long := said(m.Map(asked(proxy, uri, "X-Account: "+strings.Repeat("v", 300))))
	if !strings.HasPrefix(long, "api 1 account=sha256:") || len(long) > 160 {
		t.Error(long)
	}
	for from, want := range map[string]bool{proxy: false, "203.0.113.5:1": true} {
		if o, _ := m.Map(asked(from, uri, "X-Account: 42")); o.Ignored != want {
			t.Errorf("%s: %+v", from, o)
		}
	}
}

// Of facts that a mapping names no header for, nothing is believed, and what clients send beside
// the headers of their proxy does not matter.
func TestOneHeaderForEachFact(t *testing.T) {
	m := parsed(t, "trusted: [10.0.0.7]\nforwarded: {uri: X-Original-Uri, method: X-Original-Method}\nrules:\n"+
		"  - {domain: api, path: /api, methods: [POST], descriptors: {account: {header: X-Account}, address: {client_address: true}}}\n")
	for _, sent := range []string{"X-Forwarded-Uri: /free", "X-Forwarded-Method: GET", "X-Forwarded-For: 1.1.1.1"} {
		got := said(m.Map(asked("10.0.0.7:1", "X-Original-Uri: /api", "X-Original-Method: POST", "X-Account: 42", sent)))
		if got != "api 1 account=42 address=10.0.0.7" {
			t.Errorf("%s: %s", sent, got)
		}
	}
	if got := said(m.Map(asked("10.0.0.7:1", "X-Original-Uri: /api", "X-Account: 42"))); !strings.HasPrefix(got, "error: method: is not known") {
		t.Error(got)
	}
}

// Whatever one header says changes its own descriptor alone, and different values stay different.
func TestNothingBreaksOut(t *testing.T) {
	m := parsed(t, mapping)
	suite.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{`"`, `","plan":"pro`, "sha256:00", "\x00", "\xff\xfe", "{x}",
			"a\r\nX-Plan: pro", strings.Repeat("long", 100)}))
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		var outcomes [2]Outcome
		for i, v := range []string{a, b} {
			r := asked("10.1.2.3:4567", "X-Forwarded-Uri: /v1/items", "X-Plan: basic")
			r.Header["X-Account"] = []string{v}
			o, err := m.Map(r)
			if v == "" {
				return
			}
			if err != nil || len(o.Request.Descriptors) != 5 || o.Request.Descriptors["plan"] != "basic" ||
				o.Request.Validate() != nil {
				t.Fatalf("%q: %+v, %v", v, o, err)
			}
			outcomes[i] = o
		}
		if same := outcomes[0].Request.Descriptors["account"] == outcomes[1].Request.Descriptors["account"]; same != (a == b) {
			t.Fatalf("%q and %q: %v", a, b, outcomes)
		}
	})
}

// Of a source with values only these are believed, and each is what stands for it.
func TestValuesStandForOthers(t *testing.T) {
	const keys = "rules: [{domain: api, descriptors: {account: {header: X-Api-Key, values: {a-key: acme, sha256-key: 'sha256:x'}%s}}}]"
	for missing, want := range map[string]string{
		"":                 "error: descriptors.account: is missing: the request's header X-Api-Key is none of the mapping's values; add it there, or write optional: true",
		", optional: true": "api 1",
		", default: other": "api 1 account=other",
	} {
		m := parsed(t, fmt.Sprintf(keys, missing))
		if got := said(m.Map(asked("10.0.0.7:1", "X-Api-Key: a-key"))); got != "api 1 account=acme" {
			t.Errorf("a key that is known: %s", got)
		}
		for _, made := range []string{"acme", "A-Key", "a-key "} {
			if got := said(m.Map(asked("10.0.0.7:1", "X-Api-Key: "+made))); got != want {
				t.Errorf("%q is no key: %s", made, got)
			}
		}
	}
	none := said(parsed(t, fmt.Sprintf(keys, "")).Map(asked("10.0.0.7:1")))
	if !strings.HasPrefix(none, "error: descriptors.account: is missing: the request has no header X-Api-Key") {
		t.Error(none)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string][]string{
		"":          {"write trusted and rules"},
		"rules: []": {"0 rules"},
		"trusted: [x, 1.2.3.4/33]\nrules: [{domain: a, descriptors: {k: {value: v}}}]":    {"authz.yaml:1:11: trusted[0]: \"x\" is no address", "trusted[1]"},
		"rules: [{domain: 'a b', path: v1, methods: [get], descriptors: {}}]":             {"domain", "no beginning of a path", "methods[0]", "0 descriptors"},
		"rules: [{domain: a, descriptors: {k: {heder: X}}}]":                              {"did you mean header?", "no source"},
		"rules: [{domain: a, descriptors: {k: {header: X, value: y}}}]":                   {"there is header already"},
		"rules: [{domain: a, descriptors: {k: {header: 'X Y'}}}]":                         {"cannot stand here"},
		"rules: [{domain: a, descriptors: {k: {header: X, default: y, optional: true}}}]": {"never missing"},
		"rules: [{domain: a, descriptors: {k: {header: X, v4_bits: 8}}}]":                 {"only client_address has bits"},
		"rules: [{domain: a, descriptors: {k: {client_address: true, v4_bits: 33}}}]":     {"v4_bits"},
		"rules: [{domain: a, descriptors: {k: {header: X, values: {}}}}]":                 {"0 values"},
		"rules: [{domain: a, descriptors: {k: {header: X, values: {a: ''}}}}]":            {"values.a", "cannot stand here"},
		"rules: [{domain: a, descriptors: {k: {client_address: true, values: {a: b}}}}]":  {"nothing can stand for a client_address"},
		"rules: [{domain: a, descriptors: {k: {path: 0}}}]":                               {"path"},
		"rules: [{domain: a, descriptors: {k: {method: false}}}]":                         {"takes nothing from the request"},
		"rules: [{domain: a, descriptors: {'k k': {value: x}}, cost: {header: X}}]":       {"not a valid name", "max"},
		"trusted: [0.0.0.0/0]\nrules: [{domain: a, descriptors: {k: {value: x}}}]":        {"every client is believed"},
		"rules: [{domain: a, descriptors: {k: {header: Host}}}]":                          {"write {host: true}"},
		"rules: [{domain: a, descriptors: {k: {header: x-forwarded-for}}}]":               {"whoever asks can say this"},
		"forwarded: {url: X}\nrules: [{domain: a, descriptors: {k: {value: x}}}]":         {"forwarded.url"},
		"on_no_rule: maybe\nrules: [{domain: a, descriptors: {k: {value: x}}}]":           {"maybe"},
	} {
		_, err := Parse("authz.yaml", []byte(text))
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: want %q in\n%v", text, part, err)
			}
		}
	}
	if m := parsed(t, "on_no_rule: deny\n"+mapping); !m.DenyOthers || len(m.rules) != 3 {
		t.Errorf("%+v", m)
	}
}

func FuzzMap(f *testing.F) {
	m := parsed(f, mapping)
	f.Add("10.0.0.1:1", "/v1/a?key=b", "PUT", "h", "1.1.1.1", "42", "sid=1", "5")
	f.Add("1.2.3.4:1", "/login", "POST", "api.example.org", "[::1]:5, x", "", "sid=1; sid=2", "-")
	f.Fuzz(func(t *testing.T, from, uri, method, host, for_, account, cookie, cost string) {
		r := asked(from)
		for name, v := range map[string]string{"X-Forwarded-Uri": uri, "X-Forwarded-Method": method, "X-Forwarded-Host": host,
			"X-Forwarded-For": for_, "X-Account": account, "Cookie": cookie, "X-Cost": cost} {
			r.Header[name] = []string{v}
		}
		o, err := m.Map(r)
		if err == nil && o.Ruled && o.Request.Validate() != nil {
			t.Fatalf("%+v: %v", o, o.Request.Validate())
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(mapping))
	f.Fuzz(func(t *testing.T, src []byte) {
		if m, err := Parse("authz.yaml", src); err == nil {
			_, _ = m.Map(asked("10.1.2.3:4567", "X-Forwarded-Uri: /v1/items", "X-Account: 42"))
		}
	})
}
