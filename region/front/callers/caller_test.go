package callers

import (
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/peer"

	"github.com/quotad/quotad/chaos/lab/fronts"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestCaller: a request's caller is the host that it came from, whatever the request says.
func TestCaller(t *testing.T) {
	node := &fronts.Node{Decision: admit.Decision{Allowed: true}}
	s := newServer(t, node, fronts.Quiet())
	handler := &service{Server: s}
	ctx := peer.NewContext(t.Context(),
		&peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP("10.0.0.7"), Port: 4000}})
	m := &quotadv1.CheckRequest{Domain: "api"}
	if _, err := handler.Check(ctx, m); err != nil {
		t.Fatal(err)
	}
	if _, err := handler.CheckBatch(ctx,
		&quotadv1.CheckBatchRequest{Requests: []*quotadv1.CheckRequest{m}}); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/v1/check", strings.NewReader(`{"domain":"api"}`))
	r.RemoteAddr = "[2001:db8::7]:4000"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-For", "1.2.3.4")
	s.http.Handler.ServeHTTP(httptest.NewRecorder(), r)
	for i, want := range []string{"10.0.0.7", "10.0.0.7", "2001:db8::/64"} {
		if len(node.Checked) <= i || node.Checked[i].Caller != want {
			t.Fatalf("requests %+v, want number %d of %s", node.Checked, i, want)
		}
	}
	if got := callerOf(t.Context()); got != "" {
		t.Errorf("of no connection: %q", got)
	}
	if got := door.HostOf("bufconn"); got != "bufconn" {
		t.Errorf("of an address without a port: %q", got)
	}
}
