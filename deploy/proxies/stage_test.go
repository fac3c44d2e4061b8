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

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
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
	// bound is what passes undecided in a time, for a sliding limit a minute; nil: there is none.
	bound  func(limit float64, over time.Duration) float64
	cookie []change // that let the cookie through that the recipe proposes
	// patient are changes that let quotad take its time: on a starved machine nothing is undecided.
	patient []change
}

// The addresses that all recipes have, which the tests replace.
const (
	proxyAddress = "127.0.0.1:8000"
	appAddress   = "127.0.0.1:9000"
	nodeAddress  = "127.0.0.1:8080"
	adminAddress = "127.0.0.1:2019" // of Caddy
	luaAddress   = "abns@quotad"    // of HAProxy
)

// callsAtOnce is what docs/how-to/behind-a-proxy.md gives listen.max_connections_per_address.
const callsAtOnce = "2048"

// stage is a real proxy, set up by its recipe, between clients and an app, with a real node.
type stage struct {
	t               *testing.T
	node            *process.Node // nil: what the proxy asks is none
	redis           *process.Redis
	app             *app
	quotad, service string // the addresses of what the proxy asks, and what it serves
	address         string // of the proxy
}

// app is the service behind a proxy. It counts requests by their paths.
type app struct {
	*httptest.Server
	mu     sync.Mutex
	counts map[string]int
	seen   map[string][]string // the API keys of the last request for a path
}

func startApp(t *testing.T) *app {
	a := &app{counts: map[string]int{}, seen: map[string][]string{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

// ServeHTTP answers 200 if a POST has its body, or what the path says: /forbidden, or /broken,
// which has no answer.
func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.counts[r.URL.Path]++
	a.seen[r.URL.Path] = r.Header.Values("X-Api-Key")
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

// keys returns the API keys of the last request for a path.
func (a *app) keys(path string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[path]
}

// raise starts a node with the mapping of this folder and limits, an app, and the proxy of a recipe.
func raise(t *testing.T, r recipe, limits string) *stage {
	t.Helper()
	s := &stage{t: t, app: startApp(t)}
	s.service = s.app.Listener.Addr().String()
	s.decideBy(limits)
	s.start(r)
	return s
}

// limitsOfFolder returns the limits document of this folder.
func limitsOfFolder(t *testing.T) string {
	t.Helper()
	limits, err := os.ReadFile("limits.yaml")
	suite.Must(t, err)
	return string(limits)
}

// decideBy starts the node that the proxy asks.
func (s *stage) decideBy(limits string) {
	s.t.Helper()
	mapping, err := filepath.Abs("authz.yaml")
	suite.Must(s.t, err)
	s.t.Setenv("QUOTAD_LISTEN_MAX_CONNECTIONS_PER_ADDRESS", callsAtOnce)
	fleet, err := process.Start(s.t.Context(), s.t, process.Config{Limits: limits,
		Regions:  []process.RegionConfig{{Name: "here"}},
		Settings: []string{"authz: " + mapping}})
	suite.Must(s.t, err)
	s.node, s.redis = fleet.Regions[0].Nodes[0], fleet.Regions[0].Redis
	s.quotad = s.node.HTTP
}

// change says that a text, which stands once in a recipe, is replaced.
type change struct{ from, to string }

// start starts a proxy by its recipe, of which the addresses and what the changes say are replaced.
func (s *stage) start(r recipe, changes ...change) *process.Process {
	s.t.Helper()
	dir := s.t.TempDir()
	s.address = freeAddress(s.t)
	addresses := strings.NewReplacer(proxyAddress, s.address, nodeAddress, s.quotad,
		appAddress, s.service, adminAddress, freeAddress(s.t), luaAddress, luaAddress+s.address)
	made := make([]int, len(changes))
	for _, file := range r.files {
		text, err := os.ReadFile(filepath.Join("..", file))
		suite.Must(s.t, err)
		changed := string(text)
		for i, c := range changes {
			made[i] += strings.Count(changed, c.from)
			changed = strings.ReplaceAll(changed, c.from, c.to)
		}
		suite.Must(s.t, os.WriteFile(filepath.Join(dir, filepath.Base(file)),
			[]byte(addresses.Replace(changed)), 0o644))
	}
	for i, n := range made {
		if n != 1 {
			s.t.Fatalf("%q stands %d times in the recipe, and not once", changes[i].from, n)
		}
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
	suite.Must(s.t, err)
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
	suite.Must(t, err)
	defer l.Close()
	return l.Addr().String()
}
