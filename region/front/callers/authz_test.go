package callers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/front/authz"
)

// TestProxiesAreAnswered shows what a proxy is answered, in both flavours.
func TestProxiesAreAnswered(t *testing.T) {
	mapping, err := authz.Parse("authz.yaml", []byte("trusted: [192.0.2.1]\nrules:\n"+
		"  - {domain: api, path: /v1/, descriptors: {account: {header: X-Account}}}\n"))
	suite.Must(t, err)
	strict, err := authz.Parse("authz.yaml", []byte("on_no_rule: deny\ntrusted: [192.0.2.1]\nrules:\n"+
		"  - {domain: api, path: /v1/, descriptors: {account: {header: X-Account}}}\n"))
	suite.Must(t, err)
	for name, c := range map[string]struct {
		mapping       *authz.Mapping
		uri, account  string
		decision      admit.Decision
		plain, nginx  int
		retry, reason string
	}{
		"allowed":       {mapping, "/v1/x", "42", fronts.Allowed(), 200, 200, "", "within_limit"},
		"denied":        {mapping, "/v1/x", "42", fronts.Denied(), 429, 403, "11", "over_limit"},
		"store failure": {mapping, "/v1/x", "42", fronts.Undecided(admit.StoreFailure), 503, 403, "", "store_failure"},
		"bad input":     {mapping, "/v1/x", "", fronts.Allowed(), 400, 403, "", "descriptors.account"},
		"no rule":       {mapping, "/", "42", fronts.Denied(), 200, 200, "", "no_limit"},
		"no rule, deny": {strict, "/", "42", fronts.Allowed(), 429, 403, "", "no_limit"},
		"no mapping":    {nil, "/v1/x", "42", fronts.Allowed(), 404, 404, "", "authz"},
	} {
		t.Run(name, func(t *testing.T) {
			node := &fronts.Node{Decision: c.decision}
			s := startServer(node, fronts.Quiet(), Options{Proxies: c.mapping})
			defer func() { _ = s.Close() }() // it served nothing
			for _, method := range []string{"GET", "POST", "HEAD", "DELETE", "OPTIONS", "BREW"} {
				for path, code := range map[string]int{"/v1/authz": c.plain, "/v1/authz?deny=403": c.nginx} {
					r := httptest.NewRequest(method, path, strings.NewReader("a body that nobody reads"))
					r.Header.Set("X-Forwarded-Uri", c.uri)
					// As browsers send them, which a proxy passes on.
					r.Header.Set("Origin", "https://elsewhere.example.org")
					r.Header.Set("Sec-Fetch-Site", "cross-site")
					if c.account != "" {
						r.Header.Set("X-Account", c.account)
					}
					w := httptest.NewRecorder()
					s.http.Handler.ServeHTTP(w, r)
					if w.Code != code || w.Header().Get("Retry-After") != c.retry || !strings.Contains(w.Body.String(), c.reason) {
						t.Errorf("%s %s: %d, Retry-After %s: %s", method, path, w.Code, w.Header().Get("Retry-After"), w.Body)
					}
					if ruled := c.reason == "within_limit" || c.reason == "over_limit"; ruled && w.Header().Get("RateLimit") == "" {
						t.Errorf("%s %s: no headers: %v", method, path, w.Header())
					}
				}
			}
			for _, q := range node.Checked {
				if q.Domain != "api" || q.Descriptors["account"] != "42" || q.Caller != "192.0.2.1" {
					t.Errorf("checked %+v", q)
				}
			}
		})
	}
}

// A client that reaches the node by itself cannot make a URI up. It is refused and counted.
func TestStrangersAreNotBelieved(t *testing.T) {
	mapping, err := authz.Parse("authz.yaml", []byte("rules:\n  - {domain: api, descriptors: {path: {path: all}}}\n"))
	suite.Must(t, err)
	node := &fronts.Node{Decision: fronts.With(fronts.Allowed(), func(d *admit.Decision) { d.ResetAfter = time.Second })}
	s := startServer(node, fronts.Quiet(), Options{Proxies: mapping})
	defer func() { _ = s.Close() }()
	r := httptest.NewRequest("GET", "/v1/authz", nil)
	r.Header.Set("X-Forwarded-Uri", "/made/up")
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || len(node.Checked) > 0 || !strings.Contains(w.Body.String(), "is no trusted proxy") {
		t.Errorf("%d %s, checked %v", w.Code, w.Body, node.Checked)
	}
	if page := metricsOf(t, s); !strings.Contains(page, "quotad_authz_untrusted_total 1\n") {
		t.Errorf("it is not counted: %s", page)
	}
}

// A proxy's client does not say how long quotad has: with no time its request would not be decided,
// and pass where the proxy fails open.
func TestClientsOfProxiesNameNoTimeout(t *testing.T) {
	m, err := authz.Parse("authz.yaml", []byte("rules: [{domain: api, descriptors: {k: {value: v}}}]\n"))
	suite.Must(t, err)
	n := &fronts.Node{Decision: fronts.Allowed(), Wait: func(ctx context.Context, q admit.Request) error {
		if _, ends := ctx.Deadline(); ends || q.Wait > proxyWait || q.Wait <= httpWait {
			t.Errorf("it waits %v, its context ends by itself: %v", q.Wait, ends)
		}
		return nil
	}}
	s := startServer(n, fronts.Quiet(), Options{Proxies: m})
	r := httptest.NewRequest("GET", "/v1/authz", nil)
	r.Header.Set("Grpc-Timeout", "1n")
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	if checked, _ := n.Asked(); w.Code != http.StatusOK || checked != 1 {
		t.Errorf("%d %s, %d asked", w.Code, w.Body, checked)
	}
	_ = s.Close() // it served nothing
}

// A request that finds no room in the node waits for some: its proxy waits longer, and what is not
// decided may pass.
func TestProxiesWaitForRoom(t *testing.T) {
	m, err := authz.Parse("authz.yaml", []byte("rules: [{domain: api, descriptors: {k: {value: v}}}]\n"))
	suite.Must(t, err)
	bubble.Test(t, func(t *testing.T) {
		s := startServer(&fronts.Node{Decision: fronts.Allowed()}, fronts.Quiet(), Options{Proxies: m})
		defer func() { _ = s.Close() }() // it served nothing
		var all []*door.Held
		for held := s.work.Take("192.0.2.1", "192.0.2.1:1234", 0); held != nil; {
			all = append(all, held)
			held = s.work.Take("192.0.2.1", "192.0.2.1:1234", 0)
		}
		w := httptest.NewRecorder()
		answered := make(chan struct{})
		go func() {
			s.http.Handler.ServeHTTP(w, httptest.NewRequest("GET", "/v1/authz", nil))
			close(answered)
		}()
		time.Sleep(proxyWait / 2) // of the bubble's clock
		for _, held := range all {
			held.Done()
		}
		<-answered
		if w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// TestEveryRefusalIs403ForNginx, which takes all other codes for an error of quotad. What the node
// did not decide is one: it has a header that says so, by which proxies know it.
func TestEveryRefusalIs403ForNginx(t *testing.T) {
	m, err := authz.Parse("authz.yaml", []byte("rules: [{domain: api, descriptors: {k: {value: v}}}]\n"))
	suite.Must(t, err)
	for want, c := range map[string]struct {
		node      *fronts.Node
		busy      bool
		code      int
		undecided string
	}{"broken": {&fronts.Node{Err: errors.New("broken")}, false, 503, "failure"},
		"was not decided in time": {&fronts.Node{Err: fmt.Errorf("refuses: %w", &queue.Overload{Retry: time.Second})}, false, 503,
			"queue_full"},
		"queue_full": {&fronts.Node{}, true, 503, "queue_full"},
		"descriptors.k": {&fronts.Node{Err: invalid.Fieldf("descriptors.k", "is wrong")}, false,
			403, ""},
		"on_store_failure: deny": {&fronts.Node{Decision: fronts.Undecided(admit.StoreFailure)}, false, 403, ""}} {
		s := startServer(c.node, fronts.Quiet(), Options{Proxies: m})
		for c.busy && s.work.Take("192.0.2.1", "192.0.2.1:1234", 0) != nil {
		}
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, httptest.NewRequest("GET", "/v1/authz?deny=403", nil))
		if body := w.Body.String(); w.Code != c.code || !strings.Contains(body, want) ||
			!strings.Contains(body, fmt.Sprintf(`"status":%d`, c.code)) ||
			w.Header().Get("Quotad-Undecided") != c.undecided ||
			(w.Header().Get("Retry-After") == "1") != (c.undecided == "queue_full") {
			t.Errorf("%s: %d %v %s", want, w.Code, w.Header(), body)
		}
		_ = s.Close() // it served nothing
	}
}
