package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/quotad/quotad/region/front/roles"
)

// TestAttackRebinding: a page whose name was made to lead to loopback changes and reads nothing
// there, while proxies may ask for any host of their clients, and callers by the names that an
// operator gave.
func TestAttackRebinding(t *testing.T) {
	s := New(&fakeNode{}, quiet(), Options{Hosts: []string{"quotad.internal"}})
	defer s.Close()
	ask := func(handler http.Handler, host, method, path string, loopback bool) int {
		l := listenerAt(map[bool]string{true: "127.0.0.1:8083", false: "10.0.0.1:8083"}[loopback])
		r, err := http.NewRequestWithContext(baseContext(l), method, "http://x"+path,
			strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Content-Type", "application/json")
		// What a browser sends for a page of that host.
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	for _, path := range []string{"/v1/reset", "/v1/recover", "/v1/apply", "/v1/cut", "/v1/rehearse"} {
		for _, host := range []string{"evil.example", "evil.example:8083", "127.0.0.1.evil.example",
			"localhost.evil.example", "10.0.0.1", "[2001:db8::1]:8083", "0x7f.1"} {
			if got := ask(s.admin.Handler, host, http.MethodPost, path, true); got != http.StatusMisdirectedRequest {
				t.Errorf("%s to %s: %d", path, host, got)
			}
		}
		for _, host := range []string{"localhost", "localhost:8083", "LOCALHOST.", "127.0.0.1:8083",
			"127.1.2.3", "[::1]:8083", "quotad.internal", "quotad.internal:8083", ""} {
			if got := ask(s.admin.Handler, host, http.MethodPost, path, true); got == http.StatusMisdirectedRequest {
				t.Errorf("%s to %q is refused", path, host)
			}
		}
		if got := ask(s.admin.Handler, "node.example", http.MethodPost, path, false); got == http.StatusMisdirectedRequest {
			t.Errorf("%s at a listener beyond loopback is refused", path)
		}
	}
	for path, want := range map[string]bool{"/v1/check": true, "/json": true, "/readyz": true,
		"/v1/authz": false} {
		got := ask(s.http.Handler, "shop.example", http.MethodPost, path, true)
		if (got == http.StatusMisdirectedRequest) != want {
			t.Errorf("%s to shop.example: %d", path, got)
		}
	}
	guarded := New(&fakeNode{}, quiet(), Options{Admin: Port{Guard: roles.NewGuard("admin",
		&roles.Book{}, quiet())}})
	defer guarded.Close()
	if got := ask(guarded.admin.Handler, "evil.example", http.MethodGet, "/livez", true); got == http.StatusMisdirectedRequest {
		t.Errorf("a port with roles asks for the host, too: %d", got)
	}
}

// TestRebindingOverTheWire: the same through a real listener.
func TestRebindingOverTheWire(t *testing.T) {
	s := New(&fakeNode{}, quiet(), Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.ServeAdmin(l) })
	defer serving.Wait()
	defer s.Close()
	for host, want := range map[string]int{"evil.example": http.StatusMisdirectedRequest,
		l.Addr().String(): http.StatusOK} {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
			"http://"+l.Addr().String()+"/v1/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("%s: %d %s", host, got.StatusCode, text)
		}
	}
}

// listenerAt is a listener at an address.
type listenerAt string

func (l listenerAt) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (l listenerAt) Close() error              { return nil }
func (l listenerAt) Addr() net.Addr            { return l }
func (l listenerAt) Network() string           { return "tcp" }
func (l listenerAt) String() string            { return string(l) }
