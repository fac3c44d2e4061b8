//go:build proxies

package proxies

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/process"
)

// recipe is one of the proxies' recipes.
type recipe struct {
	program string
	files   []string // in deploy; the first is the configuration
	// args are those of the program, for a configuration.
	args func(config string) []string
	// open is the text that says to let requests pass without quotad, and closed what the recipe
	// says to write in its place.
	open, closed string
	down         int // what clients then see
}

// The addresses that all recipes have, which the tests replace.
const (
	proxyAddress = "127.0.0.1:8000"
	appAddress   = "127.0.0.1:9000"
	nodeAddress  = "127.0.0.1:8080"
	adminAddress = "127.0.0.1:2019" // of Caddy
	luaAddress   = "abns@quotad"    // of HAProxy
)

// redisTimeout is the redis.timeout that docs/how-to/behind-a-proxy.md gives nodes behind proxies:
// shorter than the time for which the recipes wait.
const redisTimeout = 30 * time.Millisecond

// stage is a real proxy, set up by its recipe, between clients and an app, with a real node.
type stage struct {
	t       *testing.T
	node    *process.Node
	redis   *process.Redis
	app     *app
	address string // of the proxy
	// addresses replaces those of the recipe.
	addresses *strings.Replacer
}

// app is the service behind a proxy. It counts requests by their paths.
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

// ServeHTTP answers 200 if a POST has its body, or what the path says: /forbidden, or /broken,
// which has no answer.
func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.counts[r.URL.Path]++
	a.mu.Unlock()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	switch r.URL.Path {
	case "/broken":
		panic(http.ErrAbortHandler)
	case "/forbidden":
		http.Error(w, "the app forbids it", http.StatusForbidden)
	default:
		if r.Method == "POST" && (err != nil || string(body) != postBody) {
			http.Error(w, "the body is missing", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, "the app's answer")
	}
}

// count returns how many requests for a path arrived.
func (a *app) count(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[path]
}

// raise starts a node with the documents of this folder, an app, and the proxy of a recipe.
func raise(t *testing.T, r recipe) *stage {
	t.Helper()
	limits, err := os.ReadFile("limits.yaml")
	must(t, err)
	mapping, err := filepath.Abs("authz.yaml")
	must(t, err)
	fleet, err := process.Start(t.Context(), t, process.Config{Limits: string(limits),
		Regions:  []process.RegionConfig{{Name: "here"}},
		Settings: []string{"authz: " + mapping}})
	must(t, err)
	here := fleet.Regions[0]
	here.Nodes[0].SetEnv("QUOTAD_REDIS_TIMEOUT=" + redisTimeout.String())
	here.Nodes[0].Kill()
	must(t, here.Nodes[0].Start(t.Context()))
	s := &stage{t: t, node: here.Nodes[0], redis: here.Redis, app: startApp(t)}
	s.start(r)
	return s
}

// start starts a proxy by its recipe, of which the addresses alone are replaced.
func (s *stage) start(r recipe) *process.Process {
	s.t.Helper()
	dir := s.t.TempDir()
	s.address = freeAddress(s.t)
	s.addresses = strings.NewReplacer(proxyAddress, s.address, nodeAddress, s.node.HTTP,
		appAddress, s.app.Listener.Addr().String(), adminAddress, freeAddress(s.t),
		luaAddress, luaAddress+s.address)
	for _, file := range r.files {
		text, err := os.ReadFile(filepath.Join("..", file))
		must(s.t, err)
		must(s.t, os.WriteFile(filepath.Join(dir, filepath.Base(file)),
			[]byte(s.addresses.Replace(string(text))), 0o644))
	}
	return s.run(r, dir)
}

// run starts the proxy whose files are in a folder.
func (s *stage) run(r recipe, dir string) *process.Process {
	s.t.Helper()
	s.t.Setenv("XDG_DATA_HOME", dir) // of Caddy
	s.t.Setenv("XDG_CONFIG_HOME", dir)
	config := filepath.Join(dir, filepath.Base(r.files[0]))
	p, err := process.StartServer(s.t.Context(), s.t, r.program, dir, s.address, r.program,
		r.args(config)...)
	must(s.t, err)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("%s:\n%s", r.program, p.Output())
		}
	})
	return p
}

// freeAddress returns an address that nobody listens on now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
