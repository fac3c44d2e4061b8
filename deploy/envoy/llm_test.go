//go:build envoy

package envoy

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

// What llm.yaml and llm-limits.yaml say.
const (
	tokensAday    = 1_000_000
	unnamedTokens = 1000 // charged for an answer that names no tokens
	requestsAmin  = 60
)

// callsLost counts Envoy's calls that no node answered, charges among them. Of questions Envoy counts
// that in questionsLost, too.
const (
	callsLost     = "cluster.quotad.upstream_rq_5xx"
	questionsLost = "cluster.app.ratelimit.error"
)

// eventsRead counts the events of streams that named tokens.
const eventsRead = "sse_to_metadata.resp.json.metadata_added"

// llm answers as services of language models do. It is the app behind an Envoy.
type llm struct {
	*app
	holding int
	told    int           // tokens that answers to /spend and /held named, before they ended
	release chan struct{} // closed: what is held ends
}

func startLLM(t *testing.T) *llm {
	m := &llm{app: &app{counts: map[string]int{}}, release: make(chan struct{})}
	m.Server = httptest.NewServer(m)
	t.Cleanup(func() {
		m.let()
		m.Close()
	})
	return m
}

// ServeHTTP answers by the path. tokens is a parameter of /spend and of /held, whose answer waits for let.
func (m *llm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.counts[r.URL.Path]++
	m.counts[""]++
	m.mu.Unlock()
	tokens, _ := strconv.Atoi(r.FormValue("tokens"))
	switch r.URL.Path {
	case "/spend":
		m.names(tokens)
		w.Header().Set("X-Tokens-Used", r.FormValue("tokens"))
		fmt.Fprint(w, "spent")
	case "/held":
		events(w, `{"delta":"a","usage":null}`)
		if m.hold(r) {
			m.names(tokens)
			events(w, fmt.Sprintf(`{"usage":{"total_tokens":%d}}`, tokens), "[DONE]")
		}
	case "/silent":
		m.hold(r)
	case "/counting":
		events(w, `{"usage":{"total_tokens":5}}`, `{"usage":{"total_tokens":7}}`)
		m.hold(r)
	case "/cut":
		events(w, `{"usage":{"total_tokens":5}}`)
		panic(http.ErrAbortHandler)
	case "/json", "/unnamed", "/failed/json":
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		body := map[string]string{"/json": `{"choices":[],"usage":{"prompt_tokens":40,"total_tokens":41}}`,
			"/failed/json": `{"usage":{"total_tokens":3}}`, "/unnamed": `{"usage":{"total_tokens":"many"}}`}[r.URL.Path]
		if strings.HasPrefix(r.URL.Path, "/failed") {
			w.WriteHeader(http.StatusInternalServerError)
		}
		write(w, r, body)
	case "/large":
		w.Header().Set("Content-Type", "application/json")
		write(w, r, `{"embedding":"`+strings.Repeat("0", 3<<20)+`","usage":{"total_tokens":42}}`)
	case "/both":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Tokens-Used", "37")
		write(w, r, `{"usage":{"total_tokens":41}}`)
	case "/stream":
		events(w, `{"delta":"a","usage":null}`,
			`{"all":"`+strings.Repeat("b", 50_000)+`","usage":{"total_tokens":43}}`, "[DONE]")
	case "/failed":
		http.Error(w, "the model is busy", http.StatusServiceUnavailable)
	default:
		fmt.Fprint(w, "no tokens are named")
	}
}

// events writes events of a stream one by one, each in two pieces that Envoy most likely reads one by one.
func events(w http.ResponseWriter, all ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range all {
		for _, piece := range []string{"data: " + e[:len(e)/2], e[len(e)/2:] + "\n\n"} {
			fmt.Fprint(w, piece)
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// write writes a body, compressed if the client takes that.
func write(w http.ResponseWriter, r *http.Request, body string) {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		fmt.Fprint(w, body)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	defer z.Close()
	fmt.Fprint(z, body)
}

func (m *llm) names(tokens int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told += tokens
}

// named returns how many tokens the answers have named.
func (m *llm) named() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.told
}

// hold waits until let is called, and returns false if the client is gone before.
func (m *llm) hold(r *http.Request) bool {
	m.mu.Lock()
	release := m.release
	m.holding++
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.holding--
		m.mu.Unlock()
	}()
	select {
	case <-release:
		return true
	case <-r.Context().Done():
		return false
	}
}

// let lets end what is held now.
func (m *llm) let() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.release)
	m.release = make(chan struct{})
}

// awaitHeld waits until so many answers are held.
func (m *llm) awaitHeld(t *testing.T, want int) {
	t.Helper()
	suite.Eventually(t, fmt.Sprintf("%d answers are held", want), func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.holding == want
	})
}

// TestLanguageModel asks a real Envoy by llm.yaml before a model, with one node. Each part has users
// of its own.
func TestLanguageModel(t *testing.T) {
	node := startNodes(t, "llm-limits.yaml", 1).Nodes[0]
	m := startLLM(t)
	s := &tokens{stage{startEnvoy(t, "llm.yaml", m.app, []string{node.GRPC}), node}, m}
	s.awaitHealthy(t, 1)
	t.Run("charged", s.charged)
	t.Run("broken off", s.brokenOff)
	t.Run("used up", s.usedUp)
	t.Run("too many requests", s.tooManyRequests)
	t.Run("no user", s.noUser)
	if c := s.counters(t); c[undecided] != 0 || c[questionsLost] != 0 || c[callsLost] != 0 {
		t.Errorf("%d passed undecided, %d calls were lost", c[undecided], c[callsLost])
	}
	t.Run("node gone", s.nodeGone)
}

// tokens is an Envoy before a model.
type tokens struct {
	stage
	model *llm
}

// charges waits until a user's charges are what they should be.
func (s *tokens) charges(t *testing.T, user string, want int) {
	t.Helper()
	got := 0
	defer func() {
		if got != want {
			t.Logf("%s was charged %d tokens, and not %d", user, got, want)
		}
	}()
	suite.Eventually(t, fmt.Sprintf("%s was charged %d tokens", user, want), func() bool {
		got = used(t, s.node, "tokens", "user", user)
		return got == want
	})
}

// charged: an answer is charged what it says that it used, wherever it says it.
func (s *tokens) charged(t *testing.T) {
	all := []struct {
		path   string
		code   int
		tokens int
	}{
		{"/spend?tokens=37", http.StatusOK, 37},
		{"/spend?tokens=12345", http.StatusOK, 12345},
		{"/spend?tokens=0", http.StatusOK, 0},
		{"/spend?tokens=many", http.StatusOK, unnamedTokens},
		{"/json", http.StatusOK, 41},
		{"/large", http.StatusOK, 42},
		{"/both", http.StatusOK, 37},
		{"/stream", http.StatusOK, 43},
		{"/text", http.StatusOK, unnamedTokens},
		{"/unnamed", http.StatusOK, unnamedTokens},
		{"/failed", http.StatusServiceUnavailable, 0},
		{"/failed/json", http.StatusInternalServerError, 3},
	}
	user := func(path string) string { return "user of " + path }
	for _, c := range all {
		if a := s.as(t, user(c.path), c.path); a.code != c.code || !a.decided() || a.body == "" {
			t.Errorf("%s: %d %v", c.path, a.code, a.header)
		}
	}
	for _, c := range all {
		s.charges(t, user(c.path), c.tokens)
	}
	for _, c := range all { // once
		if n := used(t, s.node, "tokens", "user", user(c.path)); n != c.tokens {
			t.Errorf("%s: %d tokens were charged, and not %d", c.path, n, c.tokens)
		}
		if n := used(t, s.node, "requests", "per", "request", "user", user(c.path)); n != 1 {
			t.Errorf("%s: charged as %d requests", c.path, n)
		}
	}
}

// as asks as a user.
func (s *tokens) as(t *testing.T, user, path string) answer {
	t.Helper()
	return s.client(t, "127.0.0.2").get(t, "GET", path, "X-User", user)
}

// brokenOff: an answer that its client or the model breaks off is charged what it has named by then, or
// what an answer is that names none.
func (s *tokens) brokenOff(t *testing.T) {
	for path, want := range map[string]int{"/held?tokens=3": unnamedTokens, "/silent": unnamedTokens, "/counting": 7} {
		user := "leaver of " + path
		read := s.counters(t)[eventsRead]
		ctx, leave := context.WithCancel(t.Context())
		asked := make(chan error, 1)
		go func() {
			_, err := s.client(t, "127.0.0.2").ask(ctx, "GET", path, "X-User", user)
			asked <- err
		}()
		s.model.awaitHeld(t, 1)
		if path == "/counting" {
			suite.Eventually(t, "both events are read", func() bool { return s.counters(t)[eventsRead] == read+2 })
		}
		leave()
		if err := <-asked; err == nil {
			t.Errorf("%s was not broken off", path)
		}
		s.charges(t, user, want)
		s.model.awaitHeld(t, 0)
	}
	if _, err := s.client(t, "127.0.0.2").ask(t.Context(), "GET", "/cut", "X-User", "cut"); err == nil {
		t.Error("the model did not cut its answer off")
	}
	s.charges(t, "cut", 5)
}

// usedUp: when nothing is left the next request is denied, reaches nobody and is charged nothing.
func (s *tokens) usedUp(t *testing.T) {
	const user = "spender"
	if a := s.as(t, user, fmt.Sprint("/spend?tokens=", tokensAday)); a.code != http.StatusOK {
		t.Fatalf("%v", a)
	}
	s.charges(t, user, tokensAday)
	before, owed := s.app.count(""), debt(t, s.node)
	for range 3 {
		a := s.as(t, user, "/text")
		if err := a.problem(); err != nil || !strings.Contains(a.header.Get("RateLimit"), `"tokens";r=0`) {
			t.Errorf("%v: %v", err, a)
		}
	}
	if n := s.app.count("") - before; n != 0 {
		t.Errorf("%d denied requests reached the model", n)
	}
	if n := used(t, s.node, "requests", "per", "request", "user", user); n != 1 {
		t.Errorf("charged as %d requests", n)
	}
	if a := s.as(t, "another", "/spend?tokens=1"); a.code != http.StatusOK {
		t.Errorf("another user: %v", a)
	}
	s.charges(t, "another", 1) // and so whatever was charged before
	if n := debt(t, s.node) - owed; n != 0 {
		t.Errorf("denied requests owe %d", n)
	}
}

// debt returns how many tokens did not fit when they were charged at nodes.
func debt(t *testing.T, nodes ...*process.Node) (sum int) {
	t.Helper()
	for _, n := range nodes {
		got, err := http.Get("http://" + n.Admin + "/metrics")
		suite.Must(t, err)
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		suite.Must(t, err)
		_, rest, _ := strings.Cut(string(text), "\nquotad_debt_units_total{limit=\"tokens\"} ")
		value, _, _ := strings.Cut(rest, "\n")
		if value != "" {
			f, err := strconv.ParseFloat(value, 64)
			suite.Must(t, err)
			sum += int(f)
		}
	}
	return sum
}

// tooManyRequests: beside its tokens a user has so many requests, whatever they cost.
func (s *tokens) tooManyRequests(t *testing.T) {
	admitted, denied := 0, answer{}
	suite.Eventually(t, "the requests are used up", func() bool {
		denied = s.as(t, "often", "/spend?tokens=0")
		if denied.code == http.StatusOK {
			admitted++
		}
		return denied.code != http.StatusOK
	})
	if err := denied.problem(); err != nil || admitted < requestsAmin {
		t.Errorf("denied after %d requests, %v", admitted, err)
	}
	s.charges(t, "often", 0)
}

// noUser: who is not told apart is not served, and charged nothing.
func (s *tokens) noUser(t *testing.T) {
	before := s.app.count("")
	c := s.client(t, "127.0.0.2")
	for _, headers := range [][]string{nil, {"X-User", ""}} {
		if a := c.get(t, "GET", "/text", headers...); a.code != http.StatusUnauthorized {
			t.Errorf("%v: %v", headers, a)
		}
	}
	if n := s.app.count("") - before; n != 0 {
		t.Errorf("%d reached the model", n)
	}
}

// nodeGone: what an answer used that ends while no node is there is lost. Envoy counts the call.
func (s *tokens) nodeGone(t *testing.T) {
	const user = "lucky"
	asked := make(chan answer, 1)
	go func() {
		a, err := s.client(t, "127.0.0.2").ask(t.Context(), "GET", "/held?tokens=77", "X-User", user)
		if err != nil {
			t.Error(err)
		}
		asked <- a
	}()
	s.model.awaitHeld(t, 1)
	s.node.Kill()
	s.model.let()
	if a := <-asked; a.code != http.StatusOK || !strings.Contains(a.body, "[DONE]") {
		t.Errorf("%v", a)
	}
	suite.Eventually(t, "the lost charge is counted", func() bool { return s.counters(t)[callsLost] == 1 })
	if c := s.counters(t); c[questionsLost] != 0 || c[undecided] != 0 {
		t.Errorf("%d questions were lost", c[questionsLost])
	}
	suite.Must(t, s.node.Start(t.Context()))
	s.awaitHealthy(t, 1)
	if a := s.as(t, user, "/spend?tokens=7"); a.code != http.StatusOK {
		t.Errorf("%v", a)
	}
	s.charges(t, user, 7)
	if n := s.counters(t)[callsLost]; n != 1 {
		t.Errorf("%d calls were lost, and not 1", n)
	}
}

// fleetTokens is the limit of TestLanguageModelInRegions.
const fleetTokens = 6000

// TestLanguageModelInRegions: three regions have an Envoy each. When the users of one have used up the
// limit, all three deny. What is charged, less what did not fit, is at most the limit.
func TestLanguageModelInRegions(t *testing.T) {
	f := startTokenFleet(t)
	for user, use := range map[string]func(t *testing.T, user string) (over func()){
		"some in flight": func(t *testing.T, user string) func() {
			over := f.holds(t, user, 4)
			begun := f.model.named()
			suite.Eventually(t, "the others' tokens are used, too", func() bool {
				a := f.envoys[0].as(t, user, "/spend?tokens=500")
				if a.code != http.StatusOK && a.problem() != nil {
					t.Fatalf("%v", a)
				}
				return f.model.named()-begun >= fleetTokens-500
			})
			return over
		},
		"all in flight": func(t *testing.T, user string) func() { return f.holds(t, user, 16) },
	} {
		t.Run(user, func(t *testing.T) {
			owed, named := debt(t, f.nodes...), f.model.named()
			over := use(t, user)
			begun := time.Now()
			f.model.let()
			suite.Eventually(t, "all three deny", func() bool { return f.admitting(t, user) == 0 })
			took := time.Since(begun)
			over()
			for range 20 {
				if n := f.admitting(t, user); n != 0 {
					t.Errorf("%d Envoys admit again", n)
				}
			}
			suite.Eventually(t, "what was used is charged", func() bool {
				return f.model.named()-named-(debt(t, f.nodes...)-owed) <= fleetTokens
			})
			used, above := f.model.named()-named, debt(t, f.nodes...)-owed
			if above > used {
				t.Errorf("of %d tokens %d did not fit", used, above)
			}
			fmt.Printf("tokens in three regions, %s: %d used of %d, %d of them did not fit in their region; all three Envoys denied after %v\n",
				user, used, fleetTokens, above, took.Round(time.Millisecond))
		})
	}
	for i, s := range f.envoys {
		if c := s.counters(t); c[callsLost] != 0 || c[undecided] != 0 {
			t.Errorf("Envoy %d lost %d calls, %d passed undecided", i, c[callsLost], c[undecided])
		}
	}
}

// tokenFleet is three regions with a node and an Envoy each, before one model.
type tokenFleet struct {
	model  *llm
	nodes  []*process.Node
	envoys []*tokens
}

func startTokenFleet(t *testing.T) *tokenFleet {
	t.Helper()
	limits, err := os.ReadFile("llm-limits.yaml")
	suite.Must(t, err)
	fleet, err := process.Start(t.Context(), t, process.Config{Quotad: quotad(t), Limits: apply(t, string(limits),
		edit{"  here: {weight: 1}", "  east: {weight: 1}\n  west: {weight: 1}\n  south: {weight: 1}"},
		edit{fmt.Sprintf("limit: %d\n", requestsAmin), "limit: 1000000000\n"},
		edit{fmt.Sprintf("limit: %d\n", tokensAday), fmt.Sprintf("limit: %d\n", fleetTokens)}),
		Regions:  []process.RegionConfig{{Name: "east"}, {Name: "west"}, {Name: "south"}},
		Settings: []string{"headers: {envoy: ietf}"}})
	suite.Must(t, err)
	f := &tokenFleet{model: startLLM(t)}
	for _, r := range fleet.Regions {
		n := r.Nodes[0]
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s:\n%s", n.Region, n.Output())
			}
		})
		s := &tokens{stage{startEnvoy(t, "llm.yaml", f.model.app, []string{n.GRPC}), n}, f.model}
		s.awaitHealthy(t, 1)
		f.nodes, f.envoys = append(f.nodes, n), append(f.envoys, s)
	}
	return f
}

// holds begins answers of 500 tokens each at the first Envoy. over waits until they have ended.
func (f *tokenFleet) holds(t *testing.T, user string, answers int) (over func()) {
	t.Helper()
	var work sync.WaitGroup
	for range answers {
		c := f.envoys[0].client(t, "127.0.0.2")
		work.Go(func() {
			a, err := c.ask(t.Context(), "GET", "/held?tokens=500", "X-User", user)
			if err != nil || a.code != http.StatusOK {
				t.Errorf("%v, %v", a, err)
			}
		})
	}
	f.model.awaitHeld(t, answers)
	return work.Wait
}

// admitting asks each Envoy once, and returns how many admit a user.
func (f *tokenFleet) admitting(t *testing.T, user string) (n int) {
	t.Helper()
	for _, s := range f.envoys {
		switch a := s.as(t, user, "/spend?tokens=1"); {
		case a.code == http.StatusOK:
			n++
		case a.problem() != nil:
			t.Errorf("%v", a)
		}
	}
	return n
}
