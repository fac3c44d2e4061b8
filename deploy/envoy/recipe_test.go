//go:build envoy

package envoy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

// TestRecipe asks a real Envoy that asks a real node, as the recipe has it. Each part has clients
// of its own.
func TestRecipe(t *testing.T) {
	node := startNodes(t, "limits.yaml", 1).Nodes[0]
	p := startEnvoy(t, "envoy.yaml", startApp(t), []string{node.GRPC})
	s := &stage{p, node}
	t.Run("allowed", s.allowed)
	t.Run("denied", s.denied)
	t.Run("bound", s.bound)
	t.Run("app", s.appAnswers)
	t.Run("paths", s.paths)
	t.Run("values", s.values)
	t.Run("spoofed", s.spoofed)
	if c := p.counters(t); c[undecided] != 0 || c["cluster.app.ratelimit.error"] != 0 ||
		c[decidedOK] != p.app.count("") || c[decidedOver] == 0 {
		t.Errorf("%d decided OK, %d over, %d undecided, and %d arrived", c[decidedOK], c[decidedOver],
			c[undecided], p.app.count(""))
	}
}

// stage is an Envoy and the node that it asks.
type stage struct {
	*proxy
	node *process.Node
}

// allowed: the app's answer arrives with the headers of the decision, of a client's address and of
// its account.
func (s *stage) allowed(t *testing.T) {
	c := s.client(t, "127.0.0.2")
	for _, headers := range [][]string{nil, {"X-Api-Key", "key-of-acme"}} {
		a := c.get(t, "GET", "/page?a=b", headers...)
		if a.code != http.StatusOK || a.body != "the app's answer" ||
			!strings.Contains(a.header.Get("RateLimit"), `"address";r=`) ||
			!strings.Contains(a.header.Get("RateLimit-Policy"), `"address";q=1000;w=60`) ||
			strings.Contains(a.header.Get("RateLimit"), `"account";r=`) != (len(headers) > 0) {
			t.Errorf("%v: %v", headers, a)
		}
	}
	if n := used(t, s.node, "address", "masked_remote_address", "127.0.0.2/32"); n != 2 {
		t.Errorf("the address has used %d", n)
	}
	if n := used(t, s.node, "account", "account", "acme"); n != 1 {
		t.Errorf("the account has used %d", n)
	}
}

// denied: a client sees 429, when it may come again, and a problem that programs can read. The app
// sees nothing.
func (s *stage) denied(t *testing.T) {
	c := s.client(t, "127.0.0.3")
	for range 10 {
		if a := c.get(t, "POST", "/login"); a.code != http.StatusOK {
			t.Fatalf("within the limit: %v", a)
		}
	}
	before := s.app.count("/login")
	a := c.get(t, "POST", "/login")
	if err := a.problem(); err != nil || !strings.Contains(a.header.Get("RateLimit"), `"login";r=0`) ||
		!strings.Contains(a.header.Get("RateLimit-Policy"), `"login";q=10;w=60`) {
		t.Errorf("denied: %v, %v", err, a)
	}
	if s.app.count("/login") != before {
		t.Error("what was denied reached the app")
	}
}

// bound: who goes on gets the same answer from Envoy alone, but for quotad's headers, and costs
// quotad nothing.
func (s *stage) bound(t *testing.T) {
	c, before := s.client(t, "127.0.0.3"), s.counters(t)
	for range 10 {
		a := c.get(t, "POST", "/login")
		if err := a.problem(); err != nil {
			t.Errorf("denied: %v", err)
		}
	}
	after := s.counters(t)
	by := func(name string) int { return after[name] - before[name] }
	// Of the 12 tokens one is left, or two by now.
	if by(boundDenied) < 7 || by(boundDenied)+by(decidedOver) != 10 {
		t.Errorf("Envoy denied %d by itself, and quotad %d", by(boundDenied), by(decidedOver))
	}
	if a := c.get(t, "GET", "/login"); a.code != http.StatusOK || !a.decided() {
		t.Errorf("a request that the limit is not for: %v", a)
	}
}

// appAnswers: a refusal by the app arrives as it is.
func (s *stage) appAnswers(t *testing.T) {
	c := s.client(t, "127.0.0.4")
	for path, want := range map[string]answer{
		"/forbidden": {code: http.StatusForbidden, body: "the app forbids it\n"},
		"/busy":      {code: http.StatusTooManyRequests, body: "the app is busy\n"},
	} {
		if a := c.get(t, "GET", path); a.code != want.code || a.body != want.body || !a.decided() {
			t.Errorf("%s: %v", path, a)
		}
	}
}

// paths: a path that reaches the app as /login has its limit, however it is written.
func (s *stage) paths(t *testing.T) {
	for i, c := range []struct {
		path    string
		arrives string // as; empty: not at all
	}{
		{"/login", "/login"}, {"/login?a=b", "/login"}, {"/login;v=1", "/login;v=1"},
		{"//login", "/login"}, {"///login", "/login"}, {"/./login", "/login"}, {"/x/../login", "/login"},
		{"/%6cogin", "/login"}, {"/%6Cogin", "/login"}, {"/log%69n", "/login"},
		{"/x/%2e%2e/login", "/login"}, {"/x/%2E./login", "/login"}, {"/login%20", "/login "},
		{"/login/", "/login/"}, {"/login%2f", "/login/"}, {"/%2flogin", "/login"}, {"/%5clogin", "/login"},
		{`/\login`, "/login"}, {`/x\..\login`, "/login"}, {"/x%2f..%2flogin", "/login"},
		{"http://app/login", "/login"}, {"http://app//%6cogin", "/login"},
		{"/login%00", ""}, {"/login\x00", ""}, {"/login\x7f", ""}, {"/login\xff", ""},
	} {
		ip := fmt.Sprintf("127.0.2.%d", 1+i)
		before := s.app.count(c.arrives)
		code := s.raw(t, ip, "POST "+c.path+" HTTP/1.1\r\nHost: app\r\nContent-Length: 0\r\n\r\n")
		charged := used(t, s.node, "login", "request", "sign-in", "masked_remote_address", ip+"/32")
		arrived, want, status := s.app.count(c.arrives)-before, 1, http.StatusOK
		if c.arrives == "" {
			want, status = 0, http.StatusBadRequest
		}
		if code != status || charged != want || arrived != want {
			t.Errorf("%q: %d, %d arrived, %d charged", c.path, code, arrived, charged)
		}
	}
}

// raw sends a request as it is, and returns the status of the answer.
func (s *stage) raw(t *testing.T, ip, request string) int {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", s.address)
	suite.Must(t, err)
	defer conn.Close()
	suite.Must(t, conn.SetDeadline(time.Now().Add(suite.Patience)))
	_, err = conn.Write([]byte(request))
	suite.Must(t, err)
	code, _, err := readAnswer(bufio.NewReader(conn))
	suite.Must(t, err)
	return code
}

// values: a client has its account's limit however often and however it sends its key, if an app
// could take it for that key.
func (s *stage) values(t *testing.T) {
	for i, c := range []struct {
		headers string
		code    int
		charged int
	}{
		{"X-Api-Key: key-of-acme\r\n", http.StatusOK, 1},
		{"X-Api-Key: key-of-acme\r\nX-Api-Key: key-of-acme\r\n", http.StatusOK, 1},
		{"X-Api-Key: x\r\nx-api-key:key-of-acme \t\r\n", http.StatusOK, 1},
		{"X-Api-Key: key-of-acme\r\nX-Api-Key: x\r\n", http.StatusOK, 1},
		{"X-Api-Key: key-of-acme\xff\r\n", http.StatusOK, 0},
		{"X-Api-Key: key-of-acme\x01\r\n", http.StatusBadRequest, 0},
		{"X-Api-Key: key-of-acme\r\nX: " + strings.Repeat("x", 50_000) + "\r\n", http.StatusOK, 1},
		{"X-Api-Key: key-of-acme\r\nX: " + strings.Repeat("x", 70_000) + "\r\n",
			http.StatusRequestHeaderFieldsTooLarge, 0},
	} {
		before := used(t, s.node, "account", "account", "acme")
		code := s.raw(t, fmt.Sprintf("127.0.3.%d", 1+i),
			"GET /value HTTP/1.1\r\nHost: app\r\n"+c.headers+"\r\n")
		charged := used(t, s.node, "account", "account", "acme") - before
		if code != c.code || charged != c.charged {
			t.Errorf("%.80q: %d, %d charged", c.headers, code, charged)
		}
	}
}

// spoofed: what clients say of themselves is not believed.
func (s *stage) spoofed(t *testing.T) {
	c := s.client(t, "127.0.0.6")
	lies := []string{"X-Forwarded-For", "192.0.2.66", "X-Real-Ip", "192.0.2.66",
		"X-Envoy-External-Address", "192.0.2.66", "X-Envoy-Original-Path", "/", "Forwarded", "for=192.0.2.66",
		"X-Http-Method-Override", "GET"}
	if a := c.get(t, "POST", "/login", lies...); a.code != http.StatusOK || !a.decided() {
		t.Errorf("with lies: %v", a)
	}
	// Nor can a client have Envoy remove what Envoy says.
	if a := c.get(t, "POST", "/login", append(lies, "Connection", "X-Forwarded-For")...); a.code != http.StatusBadRequest {
		t.Errorf("with a header to be removed: %v", a)
	}
	for ip, want := range map[string]int{"127.0.0.6": 1, "192.0.2.66": 0} {
		n := used(t, s.node, "login", "request", "sign-in", "masked_remote_address", ip+"/32")
		if n != want {
			t.Errorf("%s has used %d, want %d", ip, n, want)
		}
	}
}
