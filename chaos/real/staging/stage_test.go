package staging

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/caller"
	"github.com/quotad/quotad/chaos/real/scenario"
	"github.com/quotad/quotad/policy/trust"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a node whose answers the test controls.
type fake struct {
	region, name string

	mu          sync.Mutex
	cuts        []string // that it was asked for
	refuse      string   // its answer to cuts; empty: it makes them
	token       string   // that it wants to see; empty: none
	status      string   // its answer instead of a good status, if not empty
	incarnation int
	sequence    int
	lost        uint64 // packets lost, as it counts them
	peeked      string // its answer about its limit instead of the scenario's, if not empty
	server      *httptest.Server
}

// set changes what the node says.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// asked returns the cuts the node was asked for since the last call, except heals of cuts that
// nobody made.
func (f *fake) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.cuts
	f.cuts = nil
	return all
}

// cut answers a call for a cut. f.mu is held.
func (f *fake) cut(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Region, Direction, For string
		Heal                   bool
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.Heal != (q.For == "") {
		http.Error(w, "no cut", http.StatusBadRequest)
		return
	}
	f.cuts = append(f.cuts, q.Region+" "+q.Direction+" "+cmp.Or(q.For, "0s"))
	if f.refuse != "" {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"detail":%q}`, f.refuse)
		return
	}
	fmt.Fprintf(w, `{"region":%q,"packets_lost":%d}`, q.Region, f.lost)
}

// noCuts is what a node answers that was not started for cuts.
const noCuts = "this node makes no cuts; for a rehearsal of faults start it with chaos: true"

// ServeHTTP is the node's API.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token != "" && r.Header.Get("Authorization") != "Bearer "+f.token {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"detail":"this port asks who calls"}`)
		return
	}
	switch r.URL.Path {
	case "/v1/cut":
		f.cut(w, r)
		return
	case "/v1/peek":
		split := map[string]int{"us": 7, "eu": 3}[f.region]
		fmt.Fprint(w, cmp.Or(f.peeked,
			fmt.Sprintf(`{"limit":"account","algorithm":"fixed_window","limit_units":10,"entitlement":%d}`, split)))
		return
	case "/v1/check":
		f.sequence++
		fmt.Fprintf(w, `{"allowed":true,"cell":1,"at":"2026-01-01T00:00:01.000000Z","entitlement":5,"share":7,"sequence":%d}`, f.sequence)
		return
	}
	if f.status != "" {
		fmt.Fprint(w, f.status)
		return
	}
	fmt.Fprintf(w, `{"region":%q,"node":%q,"ready":true,"journal":{"incarnation":%d},"peers":[{"region":"other","heard":true}]}`,
		f.region, f.name, f.incarnation)
}

// rehearsed is a scenario that fits the deployment.
func rehearsed(t *testing.T, steps ...string) *scenario.Scenario {
	t.Helper()
	return scenarioOf(t, "us: {weight: 70, nodes: 2}, eu: {weight: 30}", steps...)
}

func scenarioOf(t *testing.T, regions string, steps ...string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("s.yaml", []byte(`
name: rehearsed
about: A test.
duration: 5s
regions: {`+regions+`}
limits:
  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: 10, window: 1s}
load:
  - {region: us, limit: account, key: "42", rate: 100}
steps: [`+strings.Join(steps, ", ")+`]
expect: [{that: ceiling}]
`))
	suite.Must(t, err)
	return s
}

// deployed is a stage on two regions, us with two nodes and eu with one.
type deployed struct {
	*Stage
	us1, us2, eu1 *fake
}

func deploy(t *testing.T) *deployed {
	t.Helper()
	nodes := &Nodes{}
	start := func(region, name string) *fake {
		f := &fake{region: region, name: name, incarnation: 1}
		f.server = httptest.NewServer(f)
		t.Cleanup(f.server.Close)
		if len(nodes.Regions) == 0 || nodes.Regions[len(nodes.Regions)-1].Name != region {
			nodes.Regions = append(nodes.Regions, Region{Name: region})
		}
		r := &nodes.Regions[len(nodes.Regions)-1]
		at := f.server.Listener.Addr().String()
		r.Nodes = append(r.Nodes, Node{Name: name, HTTP: at, Admin: at})
		return f
	}
	d := &deployed{us1: start("us", "n1"), us2: start("us", "n2"), eu1: start("eu", "n1")}
	var err error
	d.Stage, err = Open(nodes, time.Minute)
	suite.Must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// wantAsked checks the cuts that the three nodes were asked for.
func (d *deployed) wantAsked(t *testing.T, us1, us2, eu1 string) {
	t.Helper()
	for _, n := range []struct {
		node *fake
		want string
	}{{d.us1, us1}, {d.us2, us2}, {d.eu1, eu1}} {
		if got := strings.Join(n.node.asked(), ", "); got != n.want {
			t.Errorf("%s/%s was asked for %q, want %q", n.node.region, n.node.name, got, n.want)
		}
	}
}

// TestCutAndHeal: a cut is made at all nodes of the region, and healed once: by Heal, or by Close.
func TestCutAndHeal(t *testing.T) {
	d := deploy(t)
	if err := d.cut(t.Context(), "us", "eu", "in", 30*time.Second); err != nil {
		t.Fatal(err)
	}
	d.wantAsked(t, "eu in 30s", "eu in 30s", "")
	for range 2 {
		suite.Must(t, d.Heal(t.Context()))
	}
	d.wantAsked(t, "eu both 0s", "eu both 0s", "")
	if err := d.cut(t.Context(), "eu", "us", "both", caller.MostCut); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d.wantAsked(t, "", "", "us both 10m0s, us both 0s")
}

// TestCutFailsWhole: if one node refuses a cut, the others heal theirs, and the error says who
// refused.
func TestCutFailsWhole(t *testing.T) {
	d := deploy(t)
	d.us2.set(func() { d.us2.refuse = noCuts })
	err := d.cut(t.Context(), "us", "eu", "both", time.Minute)
	if err == nil || !strings.Contains(err.Error(), "quotad us/n2: Forbidden: ") ||
		!strings.Contains(err.Error(), "start it with chaos: true") ||
		!strings.Contains(err.Error(),
			"some nodes of us may stay cut off from eu for 1m0s; it ends by itself") {
		t.Error(err)
	}
	d.wantAsked(t, "eu both 1m0s, eu both 0s", "eu both 1m0s, eu both 0s", "")
	d.us2.set(func() { d.us2.refuse = "" })
	if err := d.Heal(t.Context()); err != nil { // what could not be healed before is healed now
		t.Error(err)
	}
	d.wantAsked(t, "eu both 0s", "eu both 0s", "")
}

// TestCheck: what prevents a rehearsal on a deployment is reported before anything is cut.
func TestCheck(t *testing.T) {
	const well = `{"region":"us","node":"n2","ready":true,"peers":[{"region":"eu","heard":true}]}`
	for _, c := range []struct {
		name   string
		change func(d *deployed)
		want   string
	}{
		{"all is well", func(*deployed) {}, ""},
		{"another node", func(d *deployed) { d.us2.status = strings.Replace(well, "n2", "n3", 1) },
			"is us/n3, and not us/n2; correct the nodes file"},
		{"another region", func(d *deployed) {
			d.us2.status = strings.Replace(well, "us", "ap", 1)
		}, "is ap/n2, and not us/n2; correct the nodes file"},
		{"not ready", func(d *deployed) {
			d.us2.status = strings.Replace(well, "true", "false", 1)
		}, "quotad us/n2 is not ready"},
		{"alone", func(d *deployed) {
			d.us2.status = strings.Replace(well, `"heard":true`, `"heard":false`, 1)
		}, "quotad us/n2: region eu is out of touch"},
		{"unheard of", func(d *deployed) {
			d.us2.status = `{"region":"us","node":"n2","ready":true}`
		}, "quotad us/n2: 0 of 1 other regions are known"},
		{"no quotad", func(d *deployed) { d.us2.status = "<html>" },
			"read the status of quotad us/n2"},
		{"another limit", func(d *deployed) {
			d.us2.peeked = `{"limit":"account","algorithm":"fixed_window","limit_units":11,"entitlement":7}`
		}, `decides account/42 by limit "account", fixed_window of 11, and the scenario has account, fixed_window of 10; give`},
		{"no limit", func(d *deployed) { d.us2.peeked = `{}` },
			`quotad us/n2 decides account/42 by limit "",  of 0, and`},
		{"other weights", func(d *deployed) {
			d.us2.peeked = `{"limit":"account","algorithm":"fixed_window","limit_units":10,"entitlement":5}`
		}, "quotad us/n2 has a fixed split of 5 of account/42, and by the scenario's weights it is 7; give"},
		{"no cuts", func(d *deployed) { d.us2.refuse = noCuts },
			"start it with chaos: true"},
		{"no cut of this", func(d *deployed) {
			d.us2.refuse = "region: cannot be cut off alone"
		}, "region: cannot be cut off alone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := deploy(t)
			c.change(d)
			err := d.Check(t.Context(), rehearsed(t))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(),
				c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			for _, n := range []*fake{d.us1, d.us2, d.eu1} {
				if i := slices.IndexFunc(n.asked(),
					func(cut string) bool { return !strings.HasSuffix(cut, " both 0s") }); i >= 0 {
					t.Error("something was cut")
				}
			}
		})
	}
}

// TestCheckNamesAllThatIsWrong: a node that does not answer does not hide another.
func TestCheckNamesAllThatIsWrong(t *testing.T) {
	d := deploy(t)
	d.us1.server.Close()
	d.eu1.set(func() { d.eu1.refuse = noCuts })
	err := d.Check(t.Context(), rehearsed(t))
	if err == nil || !strings.Contains(err.Error(), "GET /v1/status of quotad us/n1") ||
		!strings.Contains(err.Error(), "start it with chaos: true") {
		t.Error(err)
	}
}

// TestAsk: requests go to a region's nodes in turn. An answer has the name of the node's start that
// gave it. If its connection may lead to another start, it has a unique name.
func TestAsk(t *testing.T) {
	d := deploy(t)
	limit := oracle.Limit{Limit: 10, Window: time.Second, Algorithm: "fixed_window"}
	q := scenario.Question{Domain: "api", Descriptors: map[string]string{"account": "42"}, Cost: 1,
		Bucket: "account", Limit: limit}
	ask := func(turn uint64) oracle.Answer {
		t.Helper()
		a, sent := d.Ask(t.Context(), "us", turn, q)
		if !sent || a.Outcome != oracle.Admitted || a.Cell != 1 || a.Share != 7 ||
			a.Region != "us" || a.Bucket != "account" {
			t.Fatalf("%+v, sent %v", a, sent)
		}
		return a
	}
	settle := func(turn uint64, want string) {
		t.Helper()
		for range 5 { // the connection is known after a few requests
			if ask(turn).Node == want {
				return
			}
		}
		t.Errorf("the answers of node %d never have the name %s", turn, want)
	}
	if first := ask(0).Node; !strings.HasPrefix(first, "n1#0|") {
		t.Errorf("before anybody asked, the node's start is %s", first)
	}
	settle(0, "n1#1")
	settle(3, "n2#1")
	d.us1.set(func() { d.us1.incarnation, d.us1.sequence = 2, 0 })
	d.us1.server.CloseClientConnections() // as the node's end does
	for range 5 {
		if a, sent := d.Ask(t.Context(), "us", 0, q); sent && a.Node == "n1#1" &&
			a.Outcome != oracle.Unknown {
			t.Errorf("an answer of the second start has the name of the first: %+v", a)
		}
	}
	settle(0, "n1#2")
	if _, sent := d.Ask(t.Context(), "ap", 0, q); sent {
		t.Error("a request went to a region that is not there")
	}
	d.us2.server.Close()
	for range 5 { // requests on a connection that ends have an unknown outcome
		a, sent := d.Ask(t.Context(), "us", 1, q)
		if !sent {
			return
		}
		if a.Outcome != oracle.Unknown {
			t.Errorf("a node that is not there answers: %+v", a)
		}
	}
	t.Error("requests go to a node that is not there")
}

// TestOpenNeedsItsFiles: a token or certificate that cannot be used is told before any call.
func TestOpenNeedsItsFiles(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	suite.Must(t, os.WriteFile(empty, nil, 0o600))
	for want, a := range map[string]Access{
		"token_file: open nowhere: ":             {TokenFile: "nowhere"},
		"token_file: the file has no token":      {TokenFile: empty},
		"ca: open nowhere: ":                     {Files: trust.Files{CA: "nowhere"}},
		"ca: " + empty + " holds no certificate": {Files: trust.Files{CA: empty}},
		"cert: open nowhere: ":                   {Files: trust.Files{Cert: "nowhere", Key: "nowhere"}},
	} {
		_, err := Open(&Nodes{Regions: []Region{{"us", []Node{{Name: "n1", Access: a}}}}}, time.Minute)
		if want = "node us/n1 of the nodes file: " + want; err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestTokenAndAuthority: a node that asks who calls, over TLS, gets the token from whoever trusts
// its authority, and nobody's errors have the token.
func TestTokenAndAuthority(t *testing.T) {
	const secret = "qt1_secret"
	dir := t.TempDir()
	token, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca.pem")
	f := &fake{region: "us", name: "n1", incarnation: 1, token: secret}
	f.server = httptest.NewUnstartedServer(f)
	f.server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that callers give up
	f.server.StartTLS()
	t.Cleanup(f.server.Close)
	if err := errors.Join(os.WriteFile(token, []byte(secret+"\n"), 0o600),
		os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: f.server.Certificate().Raw}), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		access Access
		want   string // of the error; empty: it cuts
	}{
		{"both", Access{token, trust.Files{CA: ca}}, ""},
		{"no token", Access{"", trust.Files{CA: ca}}, "POST /v1/cut of quotad us/n1: the node does not know who calls: " +
			"this port asks who calls; give token_file in the nodes file"},
		{"no authority", Access{token, trust.Files{}}, "certificate"},
	} {
		at := "https://" + f.server.Listener.Addr().String()
		node := Node{"n1", at, at, c.access}
		s, err := Open(&Nodes{Regions: []Region{{"us", []Node{node}}, {"eu", []Node{node}}}},
			time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		err = s.cut(t.Context(), "us", "eu", "both", time.Second)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), secret)) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		_ = s.Close()
	}
}

// TestImpossible: steps that need processes are refused by name before any node is asked.
func TestImpossible(t *testing.T) {
	d := deploy(t)
	sc := rehearsed(t, "{at: 1s, do: cut, between: [us]}", "{at: 1s, do: kill, region: us}",
		"{at: 2s, do: flush-redis, region: eu}",
		"{at: 2s, do: delay, by: 1s}", "{at: 2s, do: cut, only: udp}",
		"{at: 2s, do: flap, every: 1s, for: 2s}", "{at: 3s, do: heal}")
	err := sc.Impossible(d)
	for _, want := range []string{
		"kill: us: not possible against a deployment that was not started here\n",
		"flush-redis: eu: not possible against a deployment that was not started here\n",
		": delay: between all regions, by 1s: not possible against a deployment that was not started here: its nodes can be cut off, and neither",
		": cut: between all regions, udp alone: not possible against a deployment that was not started here: a node cuts udp and tcp together; leave out only",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say: %s", err, want)
		}
	}
	if _, played := sc.Play(t.Context(), d, scenario.Options{}); !errors.Is(played,
		scenario.ErrNotStarted) {
		t.Errorf("played: %v", played)
	}
	if n := strings.Count(fmt.Sprint(err), "\n") + 1; n != 4 {
		t.Errorf("%d steps are refused, want 4: %v", n, err)
	}
	if _, err := d.Do(t.Context(), scenario.Step{Do: "kill", Region: "us"}); !errors.Is(err,
		scenario.ErrNotStarted) {
		t.Error(err)
	}
	d.wantAsked(t, "", "", "")
}

// TestFits: a scenario must have exactly the regions of the deployment, and its numbers of nodes.
func TestFits(t *testing.T) {
	d := deploy(t)
	for regions, want := range map[string]string{
		"us: {weight: 1, nodes: 2}, eu: {weight: 1}, ap: {weight: 1}": `the nodes file has no region "ap"; it has us, eu`,
		"us: {weight: 1, nodes: 2}, ap: {weight: 1}":                  `the nodes file has no region "ap"; it has us, eu`,
		"us: {weight: 1}, eu: {weight: 1}":                            "region us has 2 nodes in the nodes file and 1 in the scenario; give both the same",
	} {
		if err := d.Check(t.Context(), scenarioOf(t, regions)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", regions, err, want)
		}
	}
	d.nodes.Regions = append(d.nodes.Regions, Region{Name: "ap"})
	if err := d.Check(t.Context(), rehearsed(t)); err == nil || !strings.HasPrefix(err.Error(),
		"region ap of the nodes file is not in the scenario; ") {
		t.Error(err)
	}
}

// TestSteps: what each step asks of the nodes.
func TestSteps(t *testing.T) {
	d := deploy(t)
	do := func(step scenario.Step) {
		t.Helper()
		if _, err := d.Do(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
	us, eu, all := []string{"us"}, []string{"eu"}, []string{"us", "eu"}
	do(scenario.Step{Do: "cut", Between: eu, And: us, OneWay: true})
	d.wantAsked(t, "", "", "us out 1m5s")
	do(scenario.Step{Do: "heal", Between: us, And: eu})
	d.wantAsked(t, "", "", "us both 0s")
	do(scenario.Step{Do: "cut", Between: all, And: all})
	d.wantAsked(t, "eu both 1m5s", "eu both 1m5s", "us both 1m5s")
	do(scenario.Step{Do: "heal", Between: all, And: all})
	for _, n := range []*fake{d.us1, d.us2, d.eu1} {
		for _, cut := range n.asked() {
			if !strings.HasSuffix(cut, " both 0s") {
				t.Errorf("a heal is %s", cut)
			}
		}
	}
	if len(d.cuts) > 0 {
		t.Errorf("%v are still to be healed", d.cuts)
	}
	do(scenario.Step{Do: "heal", Between: all, And: all})
	d.wantAsked(t, "", "", "") // nothing is cut
	do(scenario.Step{Do: "flap", Between: us, And: eu, Every: time.Millisecond,
		For: time.Millisecond})
	d.wantAsked(t, "eu both 5.001s, eu both 0s", "eu both 5.001s, eu both 0s", "")
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := d.Do(ended, scenario.Step{Do: "flap", Between: us, And: eu, Every: time.Hour,
		For: time.Hour}); err == nil || len(d.cuts) > 0 {
		t.Errorf("a flap that was ended early: %v, and %v is still cut", err, d.cuts)
	}
}

// TestFacts: packets lost by cuts are counted from the check on, over restarts of a node, and
// everything is healed.
func TestFacts(t *testing.T) {
	d := deploy(t)
	d.us1.lost, d.us2.lost = 1000, 0
	suite.Must(t, d.Check(t.Context(), rehearsed(t)))
	d.us1.set(func() { d.us1.lost = 1005 })
	if err := d.cut(t.Context(), "us", "eu", "both", time.Second); err != nil {
		t.Fatal(err)
	}
	d.us1.set(func() { d.us1.lost = 2 }) // since it was started again
	d.us2.set(func() { d.us2.lost = 30 })
	d.us1.asked()
	facts := d.Facts()
	if !strings.Contains(fmt.Sprint(facts.Text), "37 packets lost by cuts") {
		t.Errorf("%+v", facts)
	}
	if us, eu := d.Effect(scenario.Step{Between: []string{"us"}}),
		d.Effect(scenario.Step{Between: []string{"eu"}}); us != 37 || eu != 0 {
		t.Errorf("cuts of us have lost %d, those of eu %d", us, eu)
	}
	if got := d.us1.asked(); !slices.Equal(got, []string{"eu both 0s"}) {
		t.Errorf("us/n1 was asked for %q", got)
	}
	d.us2.set(func() { d.us2.refuse = "no" })
	if facts := d.Facts(); !strings.Contains(fmt.Sprint(facts.Text), "not healed by request") {
		t.Errorf("%+v", facts)
	}
}

// TestWatch tells of a node's first state, of its changes, and of its starts.
func TestWatch(t *testing.T) {
	d := deploy(t)
	ctx, end := context.WithCancel(t.Context())
	seen := make(chan scenario.Health)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		d.Watch(ctx, func(h scenario.Health) {
			if h.Region == "us" && h.Node == 2 {
				seen <- h
			}
		})
	}()
	want := func(ready, ended bool) {
		t.Helper()
		if h := <-seen; h.Ready != ready || h.Ended != ended ||
			ended && h.Why != "it was started again: start 2" {
			t.Errorf("%+v", h)
		}
	}
	want(true, false)
	d.us2.set(func() { d.us2.status = `{"ready":false,"journal":{"incarnation":1}}` })
	want(false, false)
	d.us2.set(func() { d.us2.status, d.us2.incarnation = "", 2 })
	want(true, true)
	end()
	<-watched
}

// TestPlaced: a store's clock may be as far from ours as the nodes file says.
func TestPlaced(t *testing.T) {
	const apart = 20 * time.Millisecond
	sent := time.UnixMicro(1_000_000)
	seen := sent.Add(time.Millisecond)
	for _, c := range []struct{ at, sent, seen time.Duration }{ // since it was sent
		{500 * time.Microsecond, 0, time.Millisecond},
		{-apart, -apart, time.Millisecond},
		{-apart - time.Microsecond, 0, time.Millisecond},
		{time.Millisecond + apart, 0, time.Millisecond + apart},
		{time.Millisecond + apart + time.Microsecond, 0, time.Millisecond},
	} {
		got := placed(oracle.Answer{At: sent.Add(c.at).UnixMicro(), Sent: sent, Seen: seen}, apart)
		if !got.Sent.Equal(sent.Add(c.sent)) || !got.Seen.Equal(sent.Add(c.seen)) {
			t.Errorf("a store's time of %v: sent %v, seen %v", c.at, got.Sent.Sub(sent),
				got.Seen.Sub(sent))
		}
	}
	if got := placed(oracle.Answer{Sent: sent, Seen: seen}, time.Hour); got.Sent != sent ||
		got.Seen != seen {
		t.Error("an answer without a store's time was moved")
	}
}
