//go:build proxies

package proxies

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

var recipes = map[string]recipe{
	"nginx": {program: "nginx", files: []string{"nginx/nginx.conf"},
		args: func(config string) []string {
			return []string{"-e", "stderr", "-p", filepath.Dir(config), "-c", config,
				"-g", "daemon off; master_process off; pid nginx.pid;"}
		},
		open: "proxy_pass http://app; # to deny them instead: return 503;", closed: "return 503;",
		down: http.StatusServiceUnavailable, bound: limitReq,
		cookie: []change{{"# if ($http_cookie", "if ($http_cookie"},
			{"# proxy_set_header Cookie", "proxy_set_header Cookie"}},
		patient: []change{{"proxy_read_timeout 1s", "proxy_read_timeout 1m"}}},
	"caddy": {program: "caddy", files: []string{"caddy/Caddyfile"},
		args: func(config string) []string {
			return []string{"run", "--config", config, "--adapter", "caddyfile"}
		},
		open: "reverse_proxy @quotad_down 127.0.0.1:9000 # to deny them instead: " +
			"respond @quotad_down 503",
		closed: "respond @quotad_down 503", down: http.StatusServiceUnavailable,
		cookie:  []change{{"header_up -Cookie # unless your mapping reads it", ""}},
		patient: []change{{"response_header_timeout 1s", "response_header_timeout 1m"}}},
	"haproxy": {program: "haproxy", files: []string{"haproxy/haproxy.cfg", "haproxy/quotad.lua"},
		args:   func(config string) []string { return []string{"-db", "-f", config} },
		open:   "# http-request deny deny_status 503 if",
		closed: "http-request deny deny_status 503 if", down: http.StatusServiceUnavailable,
		bound:  stickTable,
		cookie: []change{{`-- ["cookie"]`, `["cookie"]`}},
		patient: []change{{"timeout server 1s", "timeout server 1m"}, {"timeout = 5000", "timeout = 60000"},
			{"fall 3", "fall 300"}}},
}

// TestProxies asks real proxies that ask a real node.
func TestProxies(t *testing.T) {
	for name, r := range recipes {
		t.Run(name, func(t *testing.T) {
			s := raise(t, r, limitsOfFolder(t))
			t.Run("allowed", s.allowed)
			t.Run("denied", s.denied)
			t.Run("spoofed", s.spoofed)
			t.Run("disguised", s.disguised)
			t.Run("app", s.appFails)
			t.Run("load", func(t *testing.T) { s.load(t, name) })
			t.Run("store", s.storeDown)
			t.Run("down", func(t *testing.T) { s.down(t, r) })
		})
	}
}

// allowed: the app's answer arrives with the headers of the decision, of a client's address and of
// its account.
func (s *stage) allowed(t *testing.T) {
	c := s.client("127.0.0.2")
	for _, headers := range [][]string{nil, {"X-Api-Key", "key-of-acme"}} {
		a := c.decide(t, "GET", "/page?a=b", headers...)
		if a.code != http.StatusOK || a.body != "the app's answer" ||
			!strings.Contains(a.header.Get("RateLimit"), `"address";r=`) ||
			!strings.Contains(a.header.Get("RateLimit-Policy"), `"address";q=1000;w=60`) ||
			strings.Contains(a.header.Get("RateLimit"), `"account";r=`) != (len(headers) > 0) {
			t.Errorf("%v: %v", headers, a)
		}
	}
	if s.used(t, "address", "127.0.0.2") < 2 || s.used(t, "account", "acme") < 1 {
		t.Error("address or account is not charged")
	}
}

// denied: the client sees 429, when it may come again, and a problem that programs can read. The
// app sees nothing.
func (s *stage) denied(t *testing.T) {
	c := s.client("127.0.0.3")
	a := c.decide(t, "POST", "/login")
	for range 3 * 10 {
		if a = c.decide(t, "POST", "/login"); a.code != http.StatusOK {
			break
		}
	}
	var p struct {
		Type   string
		Status int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil ||
		a.code != http.StatusTooManyRequests || p.Status != a.code ||
		!strings.HasSuffix(p.Type, "#quota-exceeded") ||
		a.header.Get("Content-Type") != "application/problem+json" ||
		a.header.Get("Retry-After") == "" ||
		!strings.Contains(a.header.Get("RateLimit"), `"login";r=0`) ||
		!strings.Contains(a.header.Get("RateLimit-Policy"), `"login";q=10;w=60`) {
		t.Errorf("denied: %v", a)
	}
	before := s.app.count("/login")
	a = c.get(t, "POST", "/login")
	if denied := a.code == http.StatusTooManyRequests; denied != (s.app.count("/login") == before) {
		t.Errorf("what was denied reached the app, or what was not did not: %v", a)
	}
}

// What a client says in the headers in which the proxy speaks, and how it has them removed.
var (
	lies = []string{"X-Forwarded-For", "192.0.2.66", "X-Real-Ip", "192.0.2.66", "X-Account", "victim",
		"X-Forwarded-Uri", "/", "X-Original-Uri", "/", "X-Original-Url", "/",
		"X-Forwarded-Method", "GET", "X-Original-Method", "GET",
		"X-Forwarded-Host", "elsewhere.example.org", "Forwarded", "for=192.0.2.66"}
	removal = "X-Account, X-Forwarded-For, X-Forwarded-Uri, X-Forwarded-Method, X-Forwarded-Host"
)

// spoofed: what clients say is not believed, nor do they take away what the proxy says.
func (s *stage) spoofed(t *testing.T) {
	c := s.client("127.0.0.4")
	for _, connection := range []string{"", removal} {
		headers := lies
		if connection != "" {
			headers = append([]string{"Connection", connection}, lies...)
		}
		account, address, login := s.used(t, "account", "acme"), s.used(t, "address", "127.0.0.4"),
			s.used(t, "login", "127.0.0.4")
		c.decide(t, "GET", "/page", append([]string{"X-Api-Key", "key-of-acme"}, headers...)...)
		c.decide(t, "POST", "/login", headers...)
		if s.used(t, "account", "acme") <= account ||
			s.used(t, "address", "127.0.0.4") <= address ||
			s.used(t, "login", "127.0.0.4") <= login {
			t.Errorf("Connection %q: the client is not charged", connection)
		}
		a := c.decide(t, "GET", "/page", headers...)
		if strings.Contains(a.header.Get("RateLimit"), "account") {
			t.Errorf("Connection %q: a client chose an account: %v", connection, a)
		}
	}
	for limit, key := range map[string]string{"account": "victim", "address": "192.0.2.66",
		"login": "192.0.2.66"} {
		if used := s.used(t, limit, key); used != 0 {
			t.Errorf("%d units of %s %s are charged", used, limit, key)
		}
	}
}

// disguised: a path has its limit however it is written.
func (s *stage) disguised(t *testing.T) {
	c := s.client("127.0.0.9")
	for _, path := range []string{"/login?a=b", "//login", "/x/../login", "/%6cogin", "/./login"} {
		before := s.used(t, "login", "127.0.0.9")
		if a := c.decide(t, "POST", path); s.used(t, "login", "127.0.0.9") <= before {
			t.Errorf("%s is not charged: %v", path, a)
		}
	}
	// With the whole URI in the request, as for a forward proxy.
	before := s.used(t, "login", "127.0.0.9")
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	conn, err := from.DialContext(t.Context(), "tcp", s.address)
	suite.Must(t, err)
	defer conn.Close()
	suite.Must(t, conn.SetDeadline(time.Now().Add(answerTimeout)))
	suite.Eventually(t, "quotad decides a whole URI", func() bool {
		_, err = fmt.Fprintf(conn, "POST http://%s/login HTTP/1.1\r\nHost: %[1]s\r\n"+
			"Content-Length: %d\r\n\r\n%s", s.address, len(postBody), postBody)
		suite.Must(t, err)
		got, err := http.ReadResponse(bufio.NewReader(conn), nil)
		suite.Must(t, err)
		_, err = io.Copy(io.Discard, got.Body)
		suite.Must(t, err)
		return answer{header: got.Header}.decided()
	})
	if s.used(t, "login", "127.0.0.9") <= before {
		t.Error("a whole URI is not charged")
	}
}

// appFails: a refusal by the app arrives as it is, and what the app does not answer is sent once.
func (s *stage) appFails(t *testing.T) {
	c := s.client("127.0.0.5")
	if a := c.decide(t, "POST", "/login"); a.code != http.StatusOK {
		t.Errorf("a request with a body: %v", a)
	}
	if a := c.decide(t, "GET", "/forbidden"); a.code != http.StatusForbidden ||
		a.body != "the app forbids it\n" {
		t.Errorf("forbidden by the app: %v", a)
	}
	// HAProxy closes the connection, if that to the app was used before.
	a, err := c.ask(t.Context(), "POST", "/broken")
	if err == nil && a.code != http.StatusBadGateway || s.app.count("/broken") != 1 {
		t.Errorf("the app was asked %d times for what it does not answer: %v", s.app.count("/broken"), a)
	}
}

// storeDown: a node whose Redis hangs decides by itself, before the proxy gives up.
func (s *stage) storeDown(t *testing.T) {
	suite.Must(t, s.redis.Pause())
	defer func() { suite.Must(t, s.redis.Resume()) }()
	if a := s.client("127.0.0.8").decide(t, "GET", "/page"); a.code != http.StatusOK {
		t.Errorf("without a store: %v", a)
	}
}

// down: a node that does not answer, or is gone, lets requests pass, or denies them if the one line
// is changed that says so. A node that is back decides again.
func (s *stage) down(t *testing.T, r recipe) {
	closed := &stage{t: t, quotad: s.quotad, service: s.service}
	closed.start(r, change{r.open, r.closed})
	check := func(how string) {
		for _, method := range []string{"GET", "POST", "GET"} {
			a := s.client("127.0.0.6").get(t, method, "/page")
			if a.code != http.StatusOK || a.decided() || a.body != "the app's answer" {
				t.Errorf("quotad %s: %v", how, a)
			}
			b := closed.client("127.0.0.6").get(t, method, "/page")
			if b.code != r.down || strings.Contains(b.body, "the app's answer") {
				t.Errorf("quotad %s, fail-closed: %v", how, b)
			}
		}
	}
	suite.Must(t, s.node.Pause())
	check("hangs")
	suite.Must(t, s.node.Resume())
	s.client("127.0.0.6").decide(t, "GET", "/page")
	s.node.Kill()
	check("is gone")
	if r.bound != nil {
		s.bounded(t, r)
	}
	suite.Must(t, s.node.Start(t.Context()))
	s.client("127.0.0.6").decide(t, "GET", "/page")
	if a := closed.client("127.0.0.6").decide(t, "GET", "/page"); a.code != http.StatusOK {
		t.Errorf("fail-closed, and quotad is back: %v", a)
	}
}

// bounded: without quotad, what the limit would admit passes, and soon no more, however the path is
// written. Other requests have their own bound.
func (s *stage) bounded(t *testing.T, r recipe) {
	c := s.client("127.0.0.13")
	began := time.Now()
	passed := 0
	var a answer
	for i := range 40 {
		a = c.get(t, "POST", []string{"/login?a=b", "//login", "/x/../%6cogin"}[i%3])
		if a.code == http.StatusOK {
			passed++
		} else if a.code != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" ||
			a.header.Get("Content-Type") != "application/problem+json" ||
			!strings.Contains(a.body, "#quota-exceeded") {
			t.Fatalf("over the bound: %v", a)
		}
	}
	if most := r.bound(10, time.Since(began)); passed < 10 || float64(passed) > most ||
		a.code != http.StatusTooManyRequests {
		t.Errorf("%d passed without quotad, of at least 10 and at most %.0f; the last: %v", passed, most, a)
	}
	if a := c.get(t, "GET", "/page"); a.code != http.StatusOK {
		t.Errorf("a page has the bound of sign-ins: %v", a)
	}
}
