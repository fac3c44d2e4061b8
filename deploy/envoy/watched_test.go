//go:build envoy

package envoy

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestWatchedDeniesNothing: the filter with which a service is watched beside another one asks it
// about every request, and no client sees what it answers, nor that it is gone. It is the filter of
// the page about envoyproxy/ratelimit. The recipe's own filter plays the service that is obeyed.
func TestWatchedDeniesNothing(t *testing.T) {
	limits, err := os.ReadFile("limits.yaml")
	suite.Must(t, err)
	stricter := filepath.Join(t.TempDir(), "limits.yaml")
	suite.Must(t, os.WriteFile(stricter, []byte(apply(t, string(limits), edit{"limit: 10\n", "limit: 4\n"})), 0o644))
	watched, obeyed := startNodes(t, stricter, 1), startNodes(t, "limits.yaml", 1)
	p := startEnvoy(t, "envoy.yaml", startApp(t), addresses(obeyed), watching(t), clusterOf(t, watched.Nodes[0].GRPC))
	p.awaitHealthy(t, 1)

	signIn := func(from string, times int) {
		c := p.client(t, from)
		for range times {
			a := c.get(t, "POST", "/login")
			if a.code != http.StatusOK || a.header.Get("X-Envoy-RateLimited") != "" {
				t.Errorf("%d, %v", a.code, a.header)
			}
		}
	}
	signIn("127.0.8.1", 10)
	for name, want := range map[string]int{decidedOK: 10, decidedOver: 0, watchedOK: 4, watchedOver: 6} {
		if got := p.counters(t)[name]; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	watched.Nodes[0].Kill()
	signIn("127.0.8.2", 10)
	if all := p.counters(t); all[decidedOK] != 20 || all[watchedFailed] != 10 {
		t.Errorf("with the watched one gone, %d passed and %d were asked of nobody", all[decidedOK], all[watchedFailed])
	}
}

// The counters of the filter that is watched.
const (
	watchedOK     = "cluster.app.ratelimit.quotad.ok"
	watchedOver   = "cluster.app.ratelimit.quotad.over_limit"
	watchedFailed = "cluster.app.ratelimit.quotad.failure_mode_allowed"
)

// watching puts the filter of the page before the recipe's own.
func watching(t *testing.T) edit {
	page, err := os.ReadFile("../../docs/how-to/from-envoy-ratelimit.md")
	suite.Must(t, err)
	_, rest, begins := strings.Cut(string(page), "\nhttp_filters:\n")
	filter, _, ends := strings.Cut(rest, "  - name: envoy.filters.http.ratelimit ")
	if !begins || !ends {
		t.Fatal("the page has no filter before the old one")
	}
	filter = apply(t, filter, edit{"cluster_name: quotad", "cluster_name: watched"})
	const own = "                  - name: envoy.filters.http.ratelimit\n"
	deeper := ""
	for line := range strings.Lines(filter) {
		deeper += strings.Repeat(" ", 16) + line
	}
	return edit{own, deeper + own}
}

// clusterOf adds the cluster of the node that is watched.
func clusterOf(t *testing.T, address string) edit {
	return edit{"\n    - name: quotad\n", `
    - name: watched
      connect_timeout: 1s
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: {http2_protocol_options: {}}
      load_assignment:
        cluster_name: watched
        endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: ` + socket(t, address) + `}}}]}]
    - name: quotad
`}
}
