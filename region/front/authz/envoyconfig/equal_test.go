package envoyconfig

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/front/authz"
)

func sources(t suite.T, limits, mapping string) Sources {
	d, err := policy.Parse("limits.yaml", []byte(limits))
	suite.Must(t, err)
	m, err := authz.Parse("authz.yaml", []byte(mapping))
	suite.Must(t, err)
	return Sources{d, m, "web", "limits.yaml", "authz.yaml"}
}

const (
	head     = "version: 1\nregions: {eu: {weight: 1}}\n"
	anyLimit = "algorithm: fixed_window, limit: 10, window: 1m}\n"
)

// drawLimits draws limits with keys and conditions on the descriptors that drawMapping makes.
func drawLimits(t *rapid.T) string {
	var b strings.Builder
	b.WriteString(head + "limits:\n")
	carried := rapid.Bool().Draw(t, "carried") // by an entry that can have conditions
	for i := range rapid.IntRange(1, 4).Draw(t, "limits") {
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"kind", "plan", "account", "verb", maskedAddress}), 1, 3,
			rapid.ID).Draw(t, "key")
		if carried && !slices.Contains(names, "kind") {
			names = append(names, "kind")
		}
		match := ""
		if rapid.IntRange(0, 3).Draw(t, "match") == 3 {
			match = "match: {" + rapid.SampledFrom([]string{"plan: free", "kind: sign-in", "account: acme"}).Draw(t, "condition") + "}, "
		}
		fmt.Fprintf(&b, "- {name: l%d, domain: web, key: [%s], %s%s", i, strings.Join(names, ", "), match, anyLimit)
	}
	return b.String()
}

// drawMapping draws a mapping, often of rules for some of each other's requests.
func drawMapping(t *rapid.T) string {
	var b strings.Builder
	b.WriteString("trusted: [10.0.0.7]\nrules:\n")
	made := []string{"kind: {value: sign-in}", "plan: {header: X-Plan, default: free}", "account: {header: X-Account, optional: true}",
		"verb: {method: true}", maskedAddress + ": {client_address: true, v4_bits: 24, v6_bits: 64}",
		"account: {header: X-Key, values: {key-of-acme: acme, key-of-globex: globex}, optional: true}",
		"plan: {header: X-Key, values: {key-of-acme: pro}, default: free}"}
	usual := rapid.SliceOfNDistinct(rapid.SampledFrom(made), 1, 4, func(one string) string {
		name, _, _ := strings.Cut(one, ":")
		return name
	})
	same := usual.Draw(t, "descriptors")
	if !slices.Contains(same, made[0]) {
		same = append(same, made[0])
	}
	for range rapid.IntRange(1, 3).Draw(t, "rules") {
		all := same
		if rapid.IntRange(0, 7).Draw(t, "others") == 7 {
			all = usual.Draw(t, "descriptors")
		}
		conditions := rapid.SampledFrom([]string{"", "", "path: /login, ", "path: /login/now/, ", "path: /v1, methods: [PUT], ",
			"methods: [POST], ", "methods: [POST, PUT], ", "host: Api.example.org, ", "host: api-example.org, ", "path: /login, methods: [POST], "}).Draw(t, "if")
		fmt.Fprintf(&b, "- {domain: %s, %sdescriptors: {%s}}\n",
			rapid.SampledFrom([]string{"web", "web", "web", "web", "web", "web", "other"}).Draw(t, "domain"), conditions, strings.Join(all, ", "))
	}
	return b.String()
}

// drawRequest draws a request, as Envoy has it and as a proxy tells of it.
func drawRequest(t *rapid.T) (request, *http.Request) {
	path := rapid.SampledFrom([]string{"/", "/login", "/login/", "/login?x=/v1", "/login/now", "/loginx", "/v1", "/v1/a/login"}).Draw(t, "path")
	method := rapid.SampledFrom([]string{"GET", "POST", "PUT"}).Draw(t, "method")
	host := rapid.SampledFrom([]string{"api.example.org", "API.example.org:8443", "api-example.org"}).Draw(t, "host")
	address := rapid.SampledFrom([]string{"192.0.2.7", "2001:db8::7"}).Draw(t, "address")
	r := request{address, map[string]string{":path": path, ":method": method, ":authority": host}}
	asked := httptest.NewRequest(http.MethodGet, "/v1/authz", nil)
	asked.RemoteAddr = "10.0.0.7:1"
	for name, value := range map[string]string{"Method": method, "Uri": path, "Host": host, "For": address} {
		asked.Header.Set("X-Forwarded-"+name, value)
	}
	for name, values := range map[string][]string{"X-Plan": {"", "pro", "free"}, "X-Account": {"", "7"}, "X-Key": {"", "key-of-acme", "key-of-globex", "no-key"}} {
		if value := rapid.SampledFrom(values).Draw(t, name); value != "" {
			r.headers[strings.ToLower(name)] = value
			asked.Header.Set(name, value)
		}
	}
	return r, asked
}

// buckets returns the buckets that lists, or the descriptors of one request, count in.
func buckets(m *policy.Matcher, domain string, lists [][]policy.KeyValue, descriptors map[string]string) (all []string) {
	for _, list := range lists {
		met, _ := m.AppendList(nil, domain, list)
		for _, l := range met {
			all = append(all, l.Name+" "+string(l.AppendBucketOf(nil, list)))
		}
	}
	if descriptors != nil {
		for _, l := range m.Append(nil, domain, descriptors) {
			all = append(all, l.Name+" "+string(l.Bucket(descriptors)))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// What Envoy sends by a configuration counts in the buckets in which the same request counts that a
// proxy asks /v1/authz about, by the same mapping. Whatever cannot be so is refused.
func TestCountsAsTheMappingDoes(t *testing.T) {
	var written, counted, refused int
	suite.Check(t, func(t *rapid.T) {
		s := sources(t, drawLimits(t), drawMapping(t))
		text, _, err := Write(s)
		if err != nil {
			refused++
			return
		}
		written++
		limits, matcher := limitsOf(t, text), s.Document.Compile()
		for range 8 {
			r, asked := drawRequest(t)
			o, err := s.Mapping.Map(asked)
			suite.Must(t, err)
			var want []string
			if o.Ruled && o.Request.Domain == "web" {
				want = buckets(matcher, "web", nil, o.Request.Descriptors)
			}
			lists := sent(t, limits, r)
			for i, list := range lists {
				if slices.ContainsFunc(lists[:i], func(l []policy.KeyValue) bool { return slices.Equal(l, list) }) {
					t.Fatalf("%v is sent twice for %v by\n%s", list, r, text)
				}
			}
			if got := buckets(matcher, "web", lists, nil); !slices.Equal(got, want) {
				t.Fatalf("%v\nis sent as %v, which counts in\n%q\nand the mapping makes %v of it, which counts in\n%q\nby\n%s", r, lists, got,
					o.Request.Descriptors, want, text)
			}
			counted += len(want)
		}
	})
	if written < 10 || counted < 100 || refused < 10 {
		t.Errorf("%d configurations, %d refused, %d counts: too few to say anything", written, refused, counted)
	}
}
