//go:build envoy

package envoy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

// program is where make envoy installs Envoy.
const program = "../../bin/envoy/envoy/_bin/envoy"

// app is the service behind Envoy. It counts requests, by their paths without a query.
type app struct {
	*httptest.Server
	mu     sync.Mutex
	counts map[string]int
}

func startApp(t *testing.T) *app {
	a := &app{counts: map[string]int{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

// ServeHTTP answers 200, or 403 to /forbidden and 429 to /busy.
func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.counts[r.URL.Path]++
	a.counts[""]++
	a.mu.Unlock()
	switch r.URL.Path {
	case "/forbidden":
		http.Error(w, "the app forbids it", http.StatusForbidden)
	case "/busy":
		http.Error(w, "the app is busy", http.StatusTooManyRequests)
	default:
		fmt.Fprint(w, "the app's answer")
	}
}

// count returns how many requests for a path arrived; an empty path: of all.
func (a *app) count(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[path]
}

// proxy is a real Envoy between clients and an app.
type proxy struct {
	*process.Process
	app            *app
	address, admin string // host:port
}

// edit replaces a text that must stand once in a recipe.
type edit struct{ old, new string }

// apply makes edits in a text.
func apply(t *testing.T, text string, edits ...edit) string {
	t.Helper()
	for _, e := range edits {
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("%q stands %d times in the recipe, and not once", e.old, n)
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return text
}

// socket is an address as the recipes write it.
func socket(t *testing.T, address string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	suite.Must(t, err)
	return fmt.Sprintf("{address: %s, port_value: %s}", host, port)
}

// The addresses of the recipes, which the tests replace.
const (
	clientsAt = "{address: 127.0.0.1, port_value: 8000}"
	appAt     = "{address: 127.0.0.1, port_value: 9000}"
	nodeAt    = `
              - endpoint: # change: listen.grpc of a node; several nodes: an endpoint for each
                  address:
                    socket_address: {address: 127.0.0.1, port_value: 8081}`
)

// startEnvoy starts an Envoy by a recipe, with some edits, that asks servers.
func startEnvoy(t *testing.T, recipe string, a *app, servers []string, edits ...edit) *proxy {
	t.Helper()
	text, err := os.ReadFile(recipe)
	suite.Must(t, err)
	p := &proxy{app: a, address: freeAddress(t), admin: freeAddress(t)}
	endpoints := ""
	for _, s := range servers {
		endpoints += "\n              - endpoint:\n                  address: {socket_address: " + socket(t, s) + "}"
	}
	all := append([]edit{{clientsAt, socket(t, p.address)}, {appAt, socket(t, a.Listener.Addr().String())},
		{nodeAt, endpoints}}, edits...)
	dir := t.TempDir()
	suite.Must(t, os.WriteFile(filepath.Join(dir, "envoy.yaml"), []byte(apply(t, string(text), all...)+
		"\nadmin: {address: {socket_address: "+socket(t, p.admin)+"}}\n"), 0o644))
	path, err := filepath.Abs(program)
	suite.Must(t, err)
	p.Process, err = process.StartServer(t.Context(), t, "envoy", dir, p.address, path, "-c", "envoy.yaml",
		"--disable-hot-restart", "--concurrency", "2", "--log-level", "warning")
	suite.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Envoy:\n%s", p.Output())
		}
	})
	return p
}

// counters returns what Envoy counted.
func (p *proxy) counters(t *testing.T) map[string]int {
	t.Helper()
	got, err := http.Get("http://" + p.admin + "/stats?type=Counters")
	suite.Must(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	suite.Must(t, err)
	all := map[string]int{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if n, err := strconv.Atoi(value); err == nil {
			all[name] = n
		}
	}
	return all
}

// The counters of what the filters decided.
const (
	decidedOK     = "cluster.app.ratelimit.ok"
	decidedOver   = "cluster.app.ratelimit.over_limit"
	undecided     = "cluster.app.ratelimit.failure_mode_allowed"
	boundDenied   = "bound.http_local_rate_limit.rate_limited"
	callsTimedOut = "cluster.quotad.upstream_rq_timeout"
	healthFailed  = "cluster.quotad.health_check.failure"
)

// gauge returns the present value of a gauge.
func (p *proxy) gauge(ctx context.Context, name string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+p.admin+"/stats?filter=^"+name+"$", nil)
	if err != nil {
		return 0, err
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(text), name+":")))
}

// awaitHealthy waits until Envoy takes so many nodes for healthy.
func (p *proxy) awaitHealthy(t *testing.T, want int) {
	t.Helper()
	suite.Eventually(t, fmt.Sprintf("%d nodes are healthy", want), func() bool {
		got, err := p.gauge(t.Context(), "cluster.quotad.membership_healthy")
		return err == nil && got == want
	})
}

// startNodes starts nodes of one region with a document of this folder, and an empty Redis.
func startNodes(t *testing.T, document string, nodes int, settings ...string) *process.Region {
	t.Helper()
	limits, err := os.ReadFile(document)
	suite.Must(t, err)
	fleet, err := process.Start(t.Context(), t, process.Config{Quotad: quotad(t), Limits: string(limits),
		Regions:  []process.RegionConfig{{Name: "here", Nodes: nodes}},
		Settings: append([]string{"headers: {envoy: ietf}"}, settings...)})
	suite.Must(t, err)
	t.Cleanup(func() {
		for _, n := range fleet.Regions[0].Nodes {
			if t.Failed() {
				t.Logf("%s:\n%s", n.Name, n.Output())
			}
		}
	})
	return fleet.Regions[0]
}

// built is the path of a quotad that all tests use.
var built struct {
	sync.Once
	path string
	err  error
}

// TestMain removes it.
func TestMain(m *testing.M) {
	code := m.Run()
	if built.path != "" {
		_ = os.RemoveAll(filepath.Dir(built.path))
	}
	os.Exit(code)
}

func quotad(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		var dir string
		if dir, built.err = os.MkdirTemp("", "quotad-envoy"); built.err == nil {
			built.path, built.err = process.Build(context.Background(), dir)
		}
	})
	suite.Must(t, built.err)
	return built.path
}

// freeAddress returns an address that nobody listens on now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	defer l.Close()
	return l.Addr().String()
}
