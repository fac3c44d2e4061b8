package wire

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/front/roles"
)

// TestAttackRebinding: a page whose name was made to lead to loopback changes and reads nothing
// there, while proxies may ask for any host of their clients, and callers by the names that an
// operator gave.
func TestAttackRebinding(t *testing.T) {
	serve := func(port Port) http.Handler {
		p := NewRoutes(port, NewLife(&fronts.Node{}, false), http.NotFound)
		done := func(http.ResponseWriter, *http.Request) {}
		p.Handle("/v1/reset", done, http.MethodPost)
		p.Handle("/v1/check", done, http.MethodPost)
		p.HandleProxied("/v1/authz", done, http.MethodGet)
		return p.NewServer("http", fronts.Quiet(), nil, 0).Handler
	}
	open := serve(Port{Hosts: []string{"quotad.internal"}})
	ask := func(handler http.Handler, host, method, path string, loopback bool) int {
		l := listenerAt(map[bool]string{true: "127.0.0.1:8083", false: "10.0.0.1:8083"}[loopback])
		r, err := http.NewRequestWithContext(baseContext(l), method, "http://x"+path,
			strings.NewReader("{}"))
		suite.Must(t, err)
		r.Host = host
		r.Header.Set("Content-Type", "application/json")
		// What a browser sends for a page of that host.
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	for _, path := range []string{"/v1/reset", "/livez", "/v1/nothing"} {
		for _, host := range []string{"evil.example", "evil.example:8083", "127.0.0.1.evil.example",
			"localhost.evil.example", "10.0.0.1", "[2001:db8::1]:8083", "0x7f.1"} {
			if got := ask(open, host, http.MethodPost, path, true); got != http.StatusMisdirectedRequest {
				t.Errorf("%s to %s: %d", path, host, got)
			}
		}
		for _, host := range []string{"localhost", "localhost:8083", "LOCALHOST.", "127.0.0.1:8083",
			"127.1.2.3", "[::1]:8083", "quotad.internal", "quotad.internal:8083", ""} {
			if got := ask(open, host, http.MethodPost, path, true); got == http.StatusMisdirectedRequest {
				t.Errorf("%s to %q is refused", path, host)
			}
		}
		if got := ask(open, "node.example", http.MethodPost, path, false); got == http.StatusMisdirectedRequest {
			t.Errorf("%s at a listener beyond loopback is refused", path)
		}
	}
	for path, want := range map[string]bool{"/v1/check": true, "/readyz": true,
		"/v1/authz": false} {
		got := ask(open, "shop.example", http.MethodPost, path, true)
		if (got == http.StatusMisdirectedRequest) != want {
			t.Errorf("%s to shop.example: %d", path, got)
		}
	}
	guarded := serve(Port{Guard: roles.NewGuard("admin", &roles.Book{}, fronts.Quiet())})
	if got := ask(guarded, "evil.example", http.MethodGet, "/livez", true); got == http.StatusMisdirectedRequest {
		t.Errorf("a port with roles asks for the host, too: %d", got)
	}
}

// listenerAt is a listener at an address.
type listenerAt string

func (l listenerAt) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (l listenerAt) Close() error              { return nil }
func (l listenerAt) Addr() net.Addr            { return l }
func (l listenerAt) Network() string           { return "tcp" }
func (l listenerAt) String() string            { return string(l) }
