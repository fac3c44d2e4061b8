//go:build envoy

package envoy

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
	"github.com/quotad/quotad/policy"
)

// floodFor is how long each flood lasts, and measuredFor how long requests a second are counted.
const (
	floodFor    = 8 * time.Second
	measuredFor = 5 * time.Second
)

// floods are those of 2,000 connections each, with the limit that they meet first.
var floods = []flood{
	{name: "one address", limit: "address", method: "GET", path: "/a", connections: 2000, addresses: 1},
	{name: "200 addresses with one key", limit: "account", method: "GET", path: "/a",
		header: "X-Api-Key: key-of-acme\r\n", connections: 2000, addresses: 200},
	{name: "POST /login", limit: "login", method: "POST", path: "/login", connections: 2000, addresses: 1},
}

// TestFloods: what reaches the service in a flood is within the bound of its limit, whether quotad
// decides or hangs. It prints that beside what an Envoy without the bound and with short timeouts
// lets pass.
func TestFloods(t *testing.T) {
	for _, f := range floods {
		for _, hangs := range []bool{false, true} {
			for name, edits := range map[string]func(*testing.T) []edit{"before": before, "now": nil} {
				what := fmt.Sprintf("%s, quotad %s, %s", f.name, map[bool]string{true: "hangs", false: "answers"}[hangs], name)
				t.Run(what, func(t *testing.T) {
					p, got := f.play(t, hangs, edits)
					reached, c := p.app.count(""), p.counters(t)
					fmt.Printf("%s: %d requests in %v, %d reached the service, %d of them undecided; p50 %v, p99 %v; "+
						"%d calls timed out, %d overflowed; %d errors\n", what, got.requests(), got.took.Round(time.Millisecond),
						reached, min(c[undecided], reached), got.p50.Round(time.Millisecond), got.p99.Round(time.Millisecond), c[callsTimedOut],
						c["cluster.quotad.upstream_rq_active_overflow"]+c["cluster.quotad.upstream_rq_pending_overflow"], got.errors)
					if most := f.most(t, got.took); edits == nil && (reached > most || reached == 0 || got.requests() <= reached) {
						t.Errorf("%d reached the service, at most %d may", reached, most)
					}
				})
			}
		}
	}
}

// play floods a new Envoy with a new node that answers or hangs.
func (f flood) play(t *testing.T, hangs bool, edits func(*testing.T) []edit) (*proxy, flooded) {
	t.Helper()
	var changes []edit
	if edits != nil {
		changes = edits(t)
	}
	node := startNodes(t, "limits.yaml", 1).Nodes[0]
	p := startEnvoy(t, "envoy.yaml", startApp(t), []string{node.GRPC}, changes...)
	if hangs {
		suite.Must(t, node.Pause())
	}
	return p, f.run(t, p.address, floodFor)
}

// most returns how many requests of a flood may reach the service in a time, by the limit's bound.
func (f flood) most(t *testing.T, d time.Duration) int {
	t.Helper()
	limits, err := policy.Load("limits.yaml")
	suite.Must(t, err)
	for _, l := range limits.Limits {
		if l.Name == f.limit {
			b, _ := l.LocalBound(time.Second)
			return int(b.Tokens) + int(d*time.Duration(b.TokensPerFill)/b.FillInterval) + 1
		}
	}
	t.Fatalf("there is no limit %s", f.limit)
	return 0
}

// before makes of the recipe what it was: no bound, timeouts of 50 ms, and neither circuit breakers
// nor checks of the nodes.
func before(t *testing.T) []edit {
	return append(withoutBound(t),
		edit{"timeout: 1s\n                      # quotad did", "timeout: 0.05s\n                      # quotad did"},
		edit{"- name: quotad\n      connect_timeout: 1s", "- name: quotad\n      connect_timeout: 0.05s"},
		found(t, `(?s)      # Envoy has room for.*?(      typed_extension)`, "$1"))
}

// withoutBound takes the bound out of the recipe.
func withoutBound(t *testing.T) []edit {
	text, _ := recipe(t)
	lists := regexp.MustCompile(`(?s)rate_limits: &lists[^\n]*\n(.*?)                      descriptors:`).FindStringSubmatch(text)
	return []edit{found(t, `(?s)                  - name: envoy.filters.http.local_ratelimit.*?(                  - name: envoy.filters.http.ratelimit)`, "$1"),
		{"rate_limits: *lists", "rate_limits:\n" + lists[1]}}
}

// found replaces what an expression finds in the recipe.
func found(t *testing.T, expression, by string) edit {
	t.Helper()
	text, _ := recipe(t)
	r := regexp.MustCompile(expression)
	at := r.FindString(text)
	if at == "" {
		t.Fatalf("%s is not in the recipe", expression)
	}
	return edit{at, r.ReplaceAllString(at, by)}
}

// TestRequestsASecond prints what Envoy does a second for clients within their limits: alone, with
// quotad, and with the bound before it.
func TestRequestsASecond(t *testing.T) {
	text, err := os.ReadFile("limits.yaml")
	suite.Must(t, err)
	large := regexp.MustCompile(`limit: \d+`).ReplaceAllString(string(text), "limit: 100000000")
	fleet, err := process.Start(t.Context(), t, process.Config{Quotad: quotad(t), Limits: large,
		Regions: []process.RegionConfig{{Name: "here"}}, Settings: []string{"headers: {envoy: ietf}"}})
	suite.Must(t, err)
	recipe, _ := recipe(t)
	bucket := regexp.MustCompile(`max_tokens: \d+, tokens_per_fill: \d+`)
	var larger []edit
	for _, at := range bucket.FindAllString(recipe, -1) {
		larger = append(larger, edit{at, "max_tokens: 100000000, tokens_per_fill: 100000000"})
	}
	without := found(t, `(?s)                  - name: envoy.filters.http.ratelimit\n.*?(                  - name: envoy.filters.http.router)`, "$1")
	for _, c := range []struct {
		name  string
		edits []edit
		quota bool
	}{{"alone", append(withoutBound(t), without), false}, {"with quotad", withoutBound(t), true},
		{"with quotad and the bound", larger, true}} {
		p := startEnvoy(t, "envoy.yaml", startApp(t), []string{fleet.Regions[0].Nodes[0].GRPC}, c.edits...)
		got := flood{method: "GET", path: "/a", header: "X-Api-Key: key-of-acme\r\n", connections: 64, addresses: 200}.run(t,
			p.address, measuredFor)
		n := p.counters(t)
		fmt.Printf("Envoy %s: %.0f requests a second, p50 %v, p99 %v\n", c.name, float64(got.requests())/got.took.Seconds(),
			got.p50.Round(10*time.Microsecond), got.p99.Round(10*time.Microsecond))
		if got.answers[200] != got.requests() || n[undecided] != 0 || (n[decidedOK] == got.requests()) != c.quota {
			t.Errorf("Envoy %s: %v, decided %d, undecided %d", c.name, got.answers, n[decidedOK], n[undecided])
		}
	}
	if strings.Count(recipe, "max_tokens") != len(larger) {
		t.Error("a bound was not made larger")
	}
}
