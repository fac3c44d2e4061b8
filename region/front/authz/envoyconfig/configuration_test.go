package envoyconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const anyRule = "rules: [{domain: web, descriptors: {account: {header: X-Account, optional: true}, plan: {header: X-Plan, optional: true}}}]\n"

// bounds returns what a configuration says of local bounds, from its line descriptors on.
func bounds(t *testing.T, limits, mapping string) string {
	t.Helper()
	text, _, err := Write(sources(t, head+limits, mapping))
	suite.Must(t, err)
	_, rest, _ := strings.Cut(text, "descriptors: # each value of a key without one has a bucket of its own\n")
	own, _, _ := strings.Cut(rest, "                  - name: envoy.filters.http.ratelimit\n")
	return strings.ReplaceAll(own, indent, "")
}

// Envoy takes one of the bounds that fit a list, no matter which, and each denies nothing that quotad
// admits.
func TestBounds(t *testing.T) {
	limit := func(name, more string) string {
		return "- {name: " + name + ", domain: web, window: 1m, algorithm: sliding_window_log, " + more + "}\n"
	}
	const pro, each = "entries: [{key: plan, value: pro}, {key: account}]", "entries: [{key: plan}, {key: account}]"
	for name, c := range map[string]struct{ limits, want string }{
		"one for each value": {"limits:\n" + limit("a", "key: [account], limit: 60"),
			"- entries: [{key: account}]\n  token_bucket: {max_tokens: 62, tokens_per_fill: 60, fill_interval: 60s}\n"},
		"all apply: the smallest": {"limits:\n" + limit("a", "key: [account], limit: 60") + limit("b", "key: [account], limit: 12") + limit("c", "key: [account], limit: 30"),
			"- entries: [{key: account}]\n  token_bucket: {max_tokens: 14, tokens_per_fill: 12, fill_interval: 60s}\n"},
		"one of two applies: the largest": {"limits:\n" + limit("a", pro+", limit: 60") + limit("b", each+", limit: 12"),
			"- entries: [{key: plan, value: pro}, {key: account}]\n  token_bucket: {max_tokens: 62, tokens_per_fill: 60, fill_interval: 60s}\n" +
				"- entries: [{key: plan}, {key: account}]\n  token_bucket: {max_tokens: 62, tokens_per_fill: 60, fill_interval: 60s}\n"},
		"one of two denies nothing": {"limits:\n" + limit("a", pro+", limit: 60, shadow: true") + limit("b", each+", limit: 12"),
			"# none for limit a: it denies nothing by itself, or not without its store\n" +
				"# none for limit b: the same requests may meet limit a, which has none\n"},
		"a pattern": {"limits:\n" + limit("a", "entries: [{key: plan, value: p*}, {key: account}], limit: 60") + limit("b", pro+", limit: 12"),
			"# none for limit a: Envoy's local bounds know no patterns of values\n" +
				"# none for limit b: the same requests may meet limit a, which has none\n"},
		"some are exempt": {"exempt: [{domain: web, entries: [{key: account, value: acme}]}]\nlimits:\n" + limit("a", "entries: [{key: account}], limit: 60"),
			"# none for limit a: the same requests may meet an exemption, which has none\n" +
				"# none for an exemption: it does not deny whatever else applies\n"},
		"some are denied": {"exempt: [{domain: web, entries: [{key: account, value: acme}], deny: true}]\nlimits:\n" + limit("a", "entries: [{key: account}], limit: 60"),
			"- entries: [{key: account}]\n  token_bucket: {max_tokens: 62, tokens_per_fill: 60, fill_interval: 60s}\n"},
		"some are denied if the others are": {"exempt: [{domain: web, entries: [{key: account, value: acme}], deny: true, window: 1m, alternative: true}]\nlimits:\n" + limit("a", "entries: [{key: account}], limit: 60"),
			"# none for limit a: the same requests may meet an exemption, which has none\n" +
				"# none for an exemption: it does not deny whatever else applies\n"},
		"what denies some is replaced": {"exempt: [{domain: web, entries: [{key: account, value: acme}], deny: true, window: 1m, alias: ban}]\nlimits:\n" +
			limit("a", "entries: [{key: account}], limit: 60") + limit("b", pro+", limit: 60, replaces: [ban]"),
			"# none for limit a: the same requests may meet an exemption, which has none\n" +
				"- entries: [{key: plan, value: pro}, {key: account}]\n  token_bucket: {max_tokens: 62, tokens_per_fill: 60, fill_interval: 60s}\n" +
				"# none for an exemption: it does not deny whatever else applies\n"},
		"patterns that no value fits both": {"limits:\n" + limit("a", "entries: [{key: plan, value: '*x'}, {key: account}], limit: 60") + limit("b", pro+", limit: 12"),
			"# none for limit a: Envoy's local bounds know no patterns of values\n" +
				"- entries: [{key: plan, value: pro}, {key: account}]\n  token_bucket: {max_tokens: 14, tokens_per_fill: 12, fill_interval: 60s}\n"},
		"one replaces the other": {"limits:\n" + limit("a", "key: [account], limit: 60") + limit("b", "key: [account], match: {plan: pro}, limit: 600, replaces: [a]"),
			"# none for limit a: others replace it\n" +
				"- entries: [{key: plan, value: pro}, {key: account}]\n  token_bucket: {max_tokens: 611, tokens_per_fill: 600, fill_interval: 60s}\n"},
		"one list for the same names": {"domains: [{name: web, descriptors: apart}]\nlimits:\n" + limit("a", "key: [account, plan], limit: 6") + limit("b", each+", limit: 12") +
			limit("c", "key: [plan, account], limit: 3"),
			"- entries: [{key: plan}, {key: account}]\n  token_bucket: {max_tokens: 5, tokens_per_fill: 3, fill_interval: 60s}\n"},
		"one that is not reached": {"limits:\n" + limit("a", "key: [account], limit: 60") + limit("b", "key: [user], limit: 60"),
			"- entries: [{key: account}]\n  token_bucket: {max_tokens: 62, tokens_per_fill: 60, fill_interval: 60s}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := bounds(t, c.limits, anyRule); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// What Envoy cannot do is refused, with its place and a way out.
func TestRefused(t *testing.T) {
	const login = "key: [account]"
	rule := func(text string) string { return "rules:\n- {domain: web, " + text + "}\n" }
	for name, c := range map[string]struct{ limits, mapping, want string }{
		"a name of one's own for an address": {login, rule("descriptors: {client: {client_address: true}}"),
			"authz.yaml:2:31: rules[0].descriptors.client: Envoy cannot send an address under this name, for its action fixes the name; " +
				"call it masked_remote_address, here and in the limits: Envoy can send masked_remote_address or remote_address"},
		"a part of a whole address":       {login, rule("descriptors: {remote_address: {client_address: true, v6_bits: 64}}"), "call it masked_remote_address"},
		"another source under that name":  {login, rule("descriptors: {remote_address: {header: X-Real-Ip, optional: true}}"), "Envoy sends addresses alone under this name"},
		"a cookie":                        {login, rule("descriptors: {account: {cookie: sid}}"), "Envoy cannot send a cookie as quotad makes it of a request; use another source: Envoy can send"},
		"a part of the path":              {login, rule("descriptors: {account: {path: 2}}"), "Envoy cannot send a path as"},
		"a header that must be there":     {login, rule("descriptors: {account: {header: X-Account}}"), "write optional: true if they may pass, or a default"},
		"an empty text":                   {login, rule("descriptors: {account: {value: ''}}"), "Envoy sends no empty text"},
		"a cost":                          {login, rule("descriptors: {account: {value: a}}, cost: {header: X-Cost, max: 9}"), "rules[0].cost: a cost in a route's rate_limits is ignored"},
		"a path in many ways":             {login, rule("path: /a b, descriptors: {account: {value: a}}"), "rules[0].path: Envoy compares paths as they are encoded"},
		"a path that there is not":        {login, rule("path: /a//b, descriptors: {account: {value: a}}"), "no request has this path"},
		"conditions without a fixed text": {login, rule("path: /a, descriptors: {account: {header: X-Account, optional: true}}"), "limit login needs none of this rule; give the rule a descriptor such as request: {value: sign-in}"},
		"an order of rules": {login, "rules:\n- {domain: web, path: /a, descriptors: {plan: {value: pro}}}\n- {domain: web, descriptors: {account: {method: true}}}\n",
			"authz.yaml:2:3: rules[0]: it comes first for requests that rules[1] is for as well, and Envoy knows no order of rules: it counts them for limit login, too; give it the same descriptors for that (account)"},
		"others are denied":    {login, "on_no_rule: deny\n" + rule("methods: [GET], descriptors: {account: {value: a}}"), "on_no_rule: Envoy passes requests that no rule is for"},
		"nothing to send":      {login, rule("descriptors: {plan: {value: pro}}"), "no rule of authz.yaml makes what a limit of domain \"web\" needs, such as account for limit login"},
		"rules of other names": {login, "rules: [{domain: api, descriptors: {account: {value: a}}}]", `authz.yaml has no rule for domain "web", so that Envoy would send nothing; add a rule, or choose one of its domains: api`},
		"terms of one limit": {"key: [account], match: {plan: pro}, algorithm: fixed_window, limit: 90, window: 1m}\n- {name: login, domain: web, key: [account]",
			rule("descriptors: {account: {value: a}, plan: {value: pro}}"), "limits.yaml:4:3: limits[0]: in Envoy's lists two terms of it would count one request; write entries"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sources(t, head+"limits:\n- {name: login, domain: web, "+c.limits+", "+anyLimit, c.mapping)
			_, _, err := Write(s)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// Rules that no request is for at once may make what they like.
func TestRulesApart(t *testing.T) {
	for _, conditions := range [][2]string{{"path: /a", "path: /ab"}, {"methods: [GET]", "methods: [POST, PUT]"},
		{"host: a.example", "host: b.example"}, {"path: /a, methods: [GET]", "path: /a/b, methods: [PUT]"}} {
		mapping := "rules:\n"
		for i, c := range conditions {
			mapping += fmt.Sprintf("- {domain: web, %s, descriptors: {kind: {value: kind-%d}, verb: {method: true}}}\n", c, i)
		}
		text, _, err := Write(sources(t, head+"limits:\n- {name: a, domain: web, key: [kind, verb], "+anyLimit, mapping))
		if err != nil || len(limitsOf(t, text)) != 2 {
			t.Errorf("%v: %v", conditions, err)
		}
	}
}

// A limit with a key that a list of another limit has as well is charged once where the lists are
// decided together. Where they are not it would be charged twice.
func TestCountsOnce(t *testing.T) {
	const limits = head + "%slimits:\n- {name: all, domain: web, key: [account], " + anyLimit + "- {name: each, domain: web, key: [account, plan], " + anyLimit
	for domains, want := range map[string]string{"": "", "domains: [{name: web, descriptors: apart}]\n": "limits[0]: each list is decided apart, and it would count a request twice: for limit each as well"} {
		_, _, err := Write(sources(t, fmt.Sprintf(limits, domains), anyRule))
		if got := fmt.Sprint(err); (want == "") != (err == nil) || !strings.Contains(got, want) {
			t.Errorf("%q: %s", domains, got)
		}
	}
	_, _, err := Write(sources(t, fmt.Sprintf(limits, "exempt: [{domain: web, entries: [{key: plan, value: in}]}]\n"), anyRule))
	if got := fmt.Sprint(err); !strings.Contains(got, "in Envoy's lists it would count what exempt[0] exempts") {
		t.Error(got)
	}
}

// A rule whose requests have more lists than quotad takes is refused. The lists for the values of one
// descriptor are one.
func TestListsOfARequest(t *testing.T) {
	const mapping = "rules: [{domain: web, descriptors: {a: {value: x}, b: {value: x}, c: {value: x}, d: {value: x}, e: {value: x}, f: " +
		"{header: X-F, values: {one: x, two: y, three: z}, optional: true}}}]"
	limits, n := head+"limits:\n", 0
	for i := range "abcdef" {
		for j := range "abcdef"[:i+1] {
			names := "abcdef"[j:j+1] + ", " + "abcdef"[i:i+1]
			if i == j {
				names = names[:1]
			}
			limits += fmt.Sprintf("- {name: l%d, domain: web, key: [%s], %s", n, names, anyLimit)
			n++
			_, _, err := Write(sources(t, limits, mapping))
			if got := fmt.Sprint(err); (n <= 16) != (err == nil) ||
				n > 16 && !strings.Contains(got, fmt.Sprintf("rules[0]: its requests have up to %d lists, and quotad takes 16", n)) {
				t.Errorf("%d lists: %s", n, got)
			}
		}
	}
}

// Terms of a limit that no rule leads to are left out alone.
func TestTermsOutOfReach(t *testing.T) {
	const limits = head + "limits:\n- {name: a, domain: web, key: [account], match: {plan: pro}, " + anyLimit + "- {name: a, domain: web, key: [account], " + anyLimit
	text, leftOut, err := Write(sources(t, limits, "rules: [{domain: web, descriptors: {account: {method: true}}}]"))
	if err != nil || len(leftOut) != 1 || !strings.Contains(text, "- entries: [{key: account}]") || strings.Contains(text, "plan") {
		t.Errorf("%v, %v\n%s", err, leftOut, text)
	}
}

// Limits that no rule leads to are left out, and told.
func TestLeftOut(t *testing.T) {
	_, leftOut, err := Write(sources(t, head+"limits:\n- {name: a, domain: web, key: [account], "+anyLimit+"- {name: b, domain: web, key: [user], "+anyLimit, anyRule))
	const want = "limit b of limits.yaml: no rule of authz.yaml makes descriptors user in domain web"
	if err != nil || len(leftOut) != 1 || !strings.HasPrefix(leftOut[0], want) {
		t.Errorf("%v, %v", leftOut, err)
	}
}

// Texts of files stay texts of YAML, and host names are compared without their port.
func TestTextsStayTexts(t *testing.T) {
	const odd = `yes: "#}`
	text, _, err := Write(sources(t, head+"limits:\n- {name: a, domain: web, entries: [{key: kind, value: 'yes: \"#}'}], "+anyLimit,
		"rules:\n- {domain: web, host: api.example.org, descriptors: {kind: {value: 'yes: \"#}'}}}\n"))
	suite.Must(t, err)
	limits := limitsOf(t, text)
	for host, want := range map[string]int{"API.example.org:8443": 1, "api.example.org": 1, "api-example.org": 0, "x.api.example.org": 0} {
		lists := sent(t, limits, request{"192.0.2.7", map[string]string{":authority": host}})
		if len(lists) != want || want == 1 && lists[0][0].Value != odd {
			t.Errorf("%s: %v", host, lists)
		}
	}
}
