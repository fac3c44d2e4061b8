//go:build envoy

package envoy

import (
	"fmt"
	"regexp"
	"testing"
	"time"
)

// floodFor is how long each flood lasts.
const floodFor = 8 * time.Second

// The floods.
var floods = []flood{
	{name: "one address", method: "GET", path: "/a", connections: 2000, addresses: 1},
	{name: "200 addresses with one key", method: "GET", path: "/a", header: "X-Api-Key: key-of-acme\r\n",
		connections: 2000, addresses: 200},
	{name: "POST /login", method: "POST", path: "/login", connections: 2000, addresses: 1},
}

// TestFloods prints what floods do to the recipe.
func TestFloods(t *testing.T) {
	for _, f := range floods {
		for _, hangs := range []bool{false, true} {
			for _, v := range []string{"before", "calls", "shipped"} {
				t.Run(fmt.Sprintf("%s/hangs=%v/%s", f.name, hangs, v), func(t *testing.T) {
					region := startNodes(t, "limits.yaml", 1)
					p := startEnvoy(t, "envoy.yaml", startApp(t), []string{region.Nodes[0].GRPC}, variants[v](t)...)
					if hangs {
						must(t, region.Nodes[0].Pause())
					}
					got := f.run(t, p.address, floodFor)
					c := p.counters(t)
					fmt.Printf("%s, hangs %v, %s: %d requests in %v, %v, %d errors, reached %d, undecided %d, ok %d over %d bound %d; p50 %v p99 %v; timeouts %d overflow %d flood %d unhealthy %d\n",
						f.name, hangs, v, got.requests(), got.took.Round(time.Millisecond), got.answers, got.errors,
						p.app.count(""), c[undecided], c[decidedOK], c[decidedOver], c[boundDenied],
						got.p50, got.p99, c[callsTimedOut], c["cluster.quotad.upstream_rq_pending_overflow"]+c["cluster.quotad.upstream_rq_active_overflow"],
						c["cluster.quotad.http2.outbound_control_flood"], c[healthFailed])
					for n, v := range c {
						if v > 0 && regexp.MustCompile("quotad|ratelimit|rate_limit").MatchString(n) {
							fmt.Println("   ", n, v)
						}
					}
				})
			}
		}
	}
}

var variants = map[string]func(t *testing.T) []edit{
	"before": func(t *testing.T) []edit {
		return append(withoutBound(t), edit{"timeout: 1s\n                      # quotad did", "timeout: 0.05s\n                      # quotad did"},
			edit{"- name: quotad\n      connect_timeout: 1s", "- name: quotad\n      connect_timeout: 0.05s"},
			cut(t, `(?s)      circuit_breakers:.*?\n(      # A node that hangs)`, "$1"),
			cut(t, `(?s)      health_checks:.*?(      typed_extension)`, "$1"))
	},
	"calls":   withoutBound,
	"shipped": func(*testing.T) []edit { return nil },
}

// withoutBound has no bound at the proxy.
func withoutBound(t *testing.T) []edit {
	return []edit{cut(t, `(?s)                  - name: envoy.filters.http.local_ratelimit.*?rate_limits: &lists.*?(                  - name: envoy.filters.http.ratelimit)`, "$1"),
		{"rate_limits: *lists", "rate_limits:\n" + lists(t)}}
}

// cut replaces what an expression finds once in the recipe.
func cut(t *testing.T, expression, by string) edit {
	text, _ := recipe(t)
	r := regexp.MustCompile(expression)
	at := r.FindString(text)
	return edit{at, r.ReplaceAllString(at, by)}
}

// lists returns the text of the recipe's lists.
func lists(t *testing.T) string {
	text, _ := recipe(t)
	r := regexp.MustCompile(`(?s)rate_limits: &lists[^\n]*\n(.*?)                      descriptors:`)
	return r.FindStringSubmatch(text)[1]
}
