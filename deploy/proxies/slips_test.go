//go:build proxies

package proxies

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// exhausted are limits of which a test uses up the first units: every further request is denied.
const exhausted = `version: 1
regions:
  here: {weight: 1}
limits:
  - {name: login, domain: web, key: [login], algorithm: sliding_window_counter, limit: 2, window: 1h}
  - {name: address, domain: web, key: [address], algorithm: sliding_window_counter, limit: 2, window: 1h}
  - {name: account, domain: web, key: [account], algorithm: sliding_window_counter, limit: 2, window: 1h}
`

// TestProxiesLetNothingSlip: requests that quotad cannot read, or reads otherwise than the proxy,
// do not pass.
func TestProxiesLetNothingSlip(t *testing.T) {
	for name, r := range recipes {
		t.Run(name, func(t *testing.T) {
			at := startCounter(t)
			s := &stage{t: t, service: at.Addr().String()}
			s.decideBy(exhausted)
			s.start(r)
			t.Run("byte in Host", func(t *testing.T) {
				s.none(t, at, 100, "GET /host HTTP/1.1\r\nHost: "+s.address+"\x01\r\nConnection: close\r\n\r\n")
			})
			t.Run("large headers", func(t *testing.T) {
				s.none(t, at, 60, "GET /large HTTP/1.1\r\nHost: "+s.address+"\r\nConnection: close\r\n"+
					strings.Repeat("X-Large: "+strings.Repeat("a", 3000)+"\r\n", 10)+"\r\n")
			})
			s.start(r, r.cookie...)
			t.Run("byte in a cookie", func(t *testing.T) {
				s.none(t, at, 100, "GET /cookie HTTP/1.1\r\nHost: "+s.address+
					"\r\nCookie: a=\x01\r\nConnection: close\r\n\r\n")
			})
			t.Run("long cookie", func(t *testing.T) {
				s.none(t, at, 60, fmt.Sprintf("GET /%s HTTP/1.1\r\nHost: %s\r\nCookie: a=%s\r\n"+
					"Connection: close\r\n\r\n", strings.Repeat("u", 7000), s.address,
					strings.Repeat("c", 7900)))
			})
			s.app = startApp(t)
			s.service = s.app.Listener.Addr().String()
			s.start(r)
			t.Run("key twice", s.keyTwice)
			t.Run("query", s.queryOfClient)
		})
	}
}

// none sends a request as it is, many times. What arrives was admitted.
func (s *stage) none(t *testing.T, at *counter, times int, request string) {
	t.Helper()
	arrived, admitted := len(at.all()), s.admitted(t)
	for range times {
		s.send("127.0.0.10", []byte(request), false)
	}
	arrived, admitted = len(at.all())-arrived, s.admitted(t)-admitted
	if arrived > admitted {
		t.Errorf("%d of %d requests arrived, and quotad admitted %d", arrived, times, admitted)
	}
}

// keyTwice: a request with its key twice is refused, or counts for the account.
func (s *stage) keyTwice(t *testing.T) {
	for i, keys := range [][]string{{"key-of-acme", "key-of-acme"}, {"", "key-of-acme"},
		{"key-of-acme", "key-of-globex"}, {"unknown", "key-of-acme"}} {
		c := s.client(fmt.Sprintf("127.0.1.%d", i+1))
		a := c.get(t, "GET", "/keys", "X-Api-Key", keys[0], "X-Api-Key", keys[1])
		if a.code != http.StatusOK {
			continue
		}
		seen := s.app.keys("/keys")
		if known := strings.Contains(strings.Join(seen, ","), "key-of"); len(seen) > 1 ||
			known != strings.Contains(a.header.Get("RateLimit"), `"account"`) {
			t.Errorf("keys %q: the app sees %q, and quotad decided %q", keys, seen, a.header.Get("RateLimit"))
		}
	}
}

// queryOfClient: quotad does not see what its client writes behind the ?.
func (s *stage) queryOfClient(t *testing.T) {
	c := s.client("127.0.0.11")
	var a answer
	for range 4 {
		a = c.decide(t, "GET", "/query?deny=403")
	}
	if a.code != http.StatusTooManyRequests {
		t.Errorf("denied: %v", a)
	}
}

// TestProxiesDenyIfTheirScriptFails: HAProxy has one, after whose failure it goes on with the request.
func TestProxiesDenyIfTheirScriptFails(t *testing.T) {
	s := &stage{t: t, app: startApp(t), quotad: "127.0.0.1:1"}
	s.service = s.app.Listener.Addr().String()
	s.start(recipes["haproxy"], change{"local answer = ask(txn)", `error("as a test says")`})
	if a := s.client("127.0.0.2").get(t, "GET", "/failed"); a.code != http.StatusServiceUnavailable ||
		s.app.count("/failed") > 0 {
		t.Errorf("the client sees %v", a)
	}
}
