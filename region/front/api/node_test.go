package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// realNode is a node with its store. Its region is the only one.
type realNode struct {
	*region.Node
	server *servers.Server
	store  *store.Store
	policy *policy.Document
}

// startNode runs a node on a Redis until the end of the test. limits are those of a document.
func startNode(t testing.TB, server *servers.Server, limits string) *realNode {
	t.Helper()
	n := &realNode{server: server}
	var err error
	if n.policy, err = policy.Parse("limits.yaml",
		[]byte("version: 1\nregions:\n  here: {weight: 1}\nlimits:\n"+limits)); err != nil {
		t.Fatal(err)
	}
	c := region.Config{Region: "here", Node: "n1", Nodes: 1, Policy: n.policy, Bootstrap: true,
		Exchange: exchange.Options{}, Log: quiet()}
	if n.store, err = store.Connect(store.Options{URL: server.URL,
		Timeout: suite.Patience}); err != nil {
		t.Fatal(err)
	}
	c.Store = n.store
	if c.Journal, err = journal.Open(filepath.Join(t.TempDir(), "journal.db"),
		journal.Options{Region: "here", Node: "n1"}); err != nil {
		t.Fatal(err)
	}
	network := network.New()
	host := network.Host("here")
	var errs [3]error
	c.PeerListener, errs[0] = host.Listen(8082)
	c.Packets, errs[1] = host.ListenPacket(7946)
	c.Streams, errs[2] = host.Listen(7946)
	c.PeerAdvertise = netip.AddrPortFrom(host.IP(), 8082).String()
	c.Advertise = netip.AddrPortFrom(host.IP(), 7946)
	c.Dial = host.DialContext
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	if n.Node, err = region.Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(n.Close(), network.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return n
}

// roomyWindow returns a window whose present cell, floor(t/W), lasts for another ten minutes.
func roomyWindow() time.Duration {
	const room = 10 * time.Minute
	w := time.Hour
	for now := time.Now().UnixMicro(); now%w.Microseconds() > (w - room).Microseconds(); {
		w += time.Minute
	}
	return w
}

func accountLimit(units int64, window time.Duration) string {
	return fmt.Sprintf("  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: %d, window: %dm, on_store_failure: deny}\n",
		units, int64(window/time.Minute))
}

// TestNode spends a limit of a real node over gRPC and HTTP, on an embedded Redis and on a
// redis-server.
func TestNode(t *testing.T) {
	for name, start := range map[string]func(context.Context) (*servers.Server, error){
		"embedded": servers.StartEmbedded, "process": servers.StartProcess,
	} {
		t.Run(name, func(t *testing.T) {
			server, err := start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			node := startNode(t, server, accountLimit(3, roomyWindow()))
			s := newServer(t, node, quiet())
			client := dialed(t, s)
			at, admin := listenHTTP(t, s, s.ServeHTTP), listenHTTP(t, s, s.ServeAdmin)
			wantFilled(t, at)
			wantSharedCount(t, quotadv1.NewQuotaServiceClient(client))
			wantLedger(t, admin)
			wantChargedOnce(t, at, admin, quotadv1.NewQuotaServiceClient(client))
			wantReset(t, at, admin)
			if got, err := healthv1.NewHealthClient(client).Check(t.Context(),
				&healthv1.HealthCheckRequest{}); err != nil ||
				got.Status != healthv1.HealthCheckResponse_SERVING {
				t.Errorf("health is %v, %v", got, err)
			}
			wantDeniedWithoutStore(t, server, at, admin, quotadv1.NewQuotaServiceClient(client))
		})
	}
}

// listenHTTP serves one of the server's ports on a loopback port until the end of the test, and
// returns its URL.
func listenHTTP(t *testing.T, s *Server, serve func(net.Listener) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := serve(l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return "http://" + l.Addr().String()
}

// callHTTP returns the status, the headers and the members of an answer.
func callHTTP(t *testing.T, method, url, body string) (int, http.Header, map[string]any) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/json")
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var members map[string]any
	if err := json.NewDecoder(r.Body).Decode(&members); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, r.Header, members
}

// wantFilled spends a limit of 3 of account 42: three of four requests pass, and a peek costs
// nothing.
func wantFilled(t *testing.T, at string) {
	t.Helper()
	const body = `{"domain":"api","descriptors":{"account":"42"}}`
	var cell any
	for i, want := range []int{200, 200, 200, 429} {
		left := float64(max(2-i, 0))
		if code, _, peeked := callHTTP(t, "POST", at+"/v1/peek", body); code != 200 ||
			peeked["remaining"] != left || peeked["allowed"] != (want == 200) {
			t.Errorf("peek before request %d: %d %v", i, code, peeked)
		}
		code, header, got := callHTTP(t, "POST", at+"/v1/check", body)
		if code != want || got["remaining"] != left || got["limit"] != "account" ||
			got["entitlement"] != 3.0 || got["share"] != 3.0 || got["degraded"] != false {
			t.Errorf("request %d: %d %v, want %d with %v remaining", i, code, got, want, left)
		}
		if header.Get("X-RateLimit-Limit") != "3" ||
			header.Get("X-RateLimit-Remaining") != fmt.Sprint(left) ||
			(header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("request %d has headers %v", i, header)
		}
		if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(got["at"])); err != nil ||
			time.Since(at).Abs() > time.Hour {
			t.Errorf("request %d was decided at %v, %v", i, got["at"], err)
		}
		if cell == nil {
			cell = got["cell"]
		}
		if got["cell"] != cell {
			t.Fatalf("the cell changed from %v to %v within the test", cell, got["cell"])
		}
	}
	if code, _, got := callHTTP(t, "POST", at+"/v1/check",
		`{"domain":"api","descriptors":{"account":"7"},"cost":4}`); code != 429 ||
		got["reason"] != "never" || got["retry_after_ms"] != nil {
		t.Errorf("a cost above the limit: %d %v", code, got)
	}
	if code, _, got := callHTTP(t, "POST", at+"/v1/check", `{"domain":"other"}`); code != 200 ||
		got["reason"] != "no_limit" || got["limit"] != nil {
		t.Errorf("a request without a limit: %d %v", code, got)
	}
}

// wantSharedCount finds account 42 spent over gRPC too, and spends account 43 in a batch: exactly
// three requests pass.
func wantSharedCount(t *testing.T, client quotadv1.QuotaServiceClient) {
	t.Helper()
	got, err := client.Check(t.Context(), &quotadv1.CheckRequest{Domain: "api",
		Descriptors: map[string]string{"account": "42"}})
	if err != nil || got.Decision.Allowed ||
		got.Decision.Reason != quotadv1.Reason_REASON_OVER_LIMIT ||
		got.Decision.RetryAfter.AsDuration() <= 0 {
		t.Errorf("account 42 over gRPC: %v, %v", got, err)
	}
	var m quotadv1.CheckBatchRequest
	for range 50 {
		m.Requests = append(m.Requests, &quotadv1.CheckRequest{Domain: "api",
			Descriptors: map[string]string{"account": "43"}, Cost: proto.Int64(1)})
	}
	batch, err := client.CheckBatch(t.Context(), &m)
	if err != nil {
		t.Fatal(err)
	}
	var passed int
	seen := map[uint64]bool{}
	for _, d := range batch.Decisions {
		seen[d.Sequence] = true
		if d.Allowed {
			passed++
		}
	}
	if passed != 3 || len(seen) != 50 {
		t.Errorf("of a batch of 50 on a limit of 3, %d passed, with %d different sequence numbers",
			passed, len(seen))
	}
}

func wantLedger(t *testing.T, at string) {
	t.Helper()
	code, _, got := callHTTP(t, "GET", at+"/v1/buckets/account?domain=api&account=42", "")
	if code != 200 || got["used"] != 3.0 || got["free"] != 0.0 || got["fading"] != 0.0 ||
		got["algorithm"] != "fixed_window" || got["limit_units"] != 3.0 ||
		got["entitlement"] != 3.0 || got["share"] != 3.0 || got["next_share"] != 3.0 {
		t.Errorf("the bucket of account 42: %d %v", code, got)
	}
	if code, _, got := callHTTP(t, "GET", at+"/v1/buckets/other?domain=api&account=42",
		""); code != 404 {
		t.Errorf("a bucket that is not: %d %v", code, got)
	}
	if code, _, got := callHTTP(t, "GET", at+"/v1/status", ""); code != 200 ||
		got["region"] != "here" || got["ready"] != true || got["generation"] == 0.0 {
		t.Errorf("the status: %d %v", code, got)
	}
}

// wantChargedOnce sends a request of account 45 with one id over gRPC and HTTP, and wants it
// charged once and refunded once.
func wantChargedOnce(t *testing.T, at, admin string, client quotadv1.QuotaServiceClient) {
	t.Helper()
	const body = `{"domain":"api","descriptors":{"account":"45"},"cost":2,"request_id":"r1","receipt":true}`
	code, _, first := callHTTP(t, "POST", at+"/v1/check", body)
	if code != 200 || first["remaining"] != 1.0 || first["repeated"] != nil ||
		first["receipt"] == nil {
		t.Fatalf("the first time: %d %v", code, first)
	}
	m := &quotadv1.CheckRequest{Domain: "api", Descriptors: map[string]string{"account": "45"},
		Cost: proto.Int64(2), RequestId: "r1", Receipt: true}
	batch, err := client.CheckBatch(t.Context(),
		&quotadv1.CheckBatchRequest{Requests: []*quotadv1.CheckRequest{m, m}})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range batch.Decisions {
		if !d.Allowed || !d.Repeated || d.Remaining != 1 || d.Receipt == "" {
			t.Errorf("repeated as number %d of a batch: %v", i, d)
		}
	}
	for i, c := range []struct{ receipt, repeated any }{{first["receipt"], false},
		{batch.Decisions[0].Receipt, true}} {
		code, _, got := callHTTP(t, "POST", at+"/v1/refund", fmt.Sprintf(`{"receipt":%q}`,
			c.receipt))
		back, _ := got["refunded"].([]any)
		if code != 200 || got["repeated"] != c.repeated || len(back) != 1 ||
			fmt.Sprint(back[0]) != "map[limit:account units:2]" {
			t.Errorf("refund %d: %d %v", i, code, got)
		}
	}
	got, err := client.Refund(t.Context(),
		&quotadv1.RefundRequest{Receipt: batch.Decisions[1].Receipt})
	if err != nil || !got.Repeated || len(got.Refunded) != 1 || got.Refunded[0].Units != 2 {
		t.Errorf("refund over gRPC: %v, %v", got, err)
	}
	if code, _, got := callHTTP(t, "GET", admin+"/v1/buckets/account?domain=api&account=45",
		""); code != 200 || got["used"] != 0.0 || got["free"] != 3.0 {
		t.Errorf("after its refund the bucket is %d %v", code, got)
	}
	if code, _, got := callHTTP(t, "POST", at+"/v1/refund", `{"receipt":"none"}`); code != 400 ||
		got["field"] != "receipt" {
		t.Errorf("what is no receipt: %d %v", code, got)
	}
	forged, _ := strings.CutPrefix(fmt.Sprint(first["receipt"]), "qr1_")
	// This replaces the code that authenticates it, in base64.
	forged = "qr1_" + strings.Repeat("A", 43) + forged[43:]
	if code, _, got := callHTTP(t, "POST", at+"/v1/refund", fmt.Sprintf(`{"receipt":%q}`,
		forged)); code != 409 || got["status"] != 409.0 {
		t.Errorf("a forged receipt: %d %v", code, got)
	}
}

// wantReset clears the use of account 42.
func wantReset(t *testing.T, at, admin string) {
	t.Helper()
	const body = `{"limit":"account","domain":"api","descriptors":{"account":"42"}}`
	if code, _, got := callHTTP(t, "POST", admin+"/v1/reset", body); code != 200 ||
		got["cleared"] != 3.0 {
		t.Errorf("reset: %d %v", code, got)
	}
	if code, _, got := callHTTP(t, "POST", at+"/v1/check",
		`{"domain":"api","descriptors":{"account":"42"}}`); code != 200 || got["remaining"] != 2.0 {
		t.Errorf("after a reset: %d %v", code, got)
	}
	if code, _, got := callHTTP(t, "POST", admin+"/v1/reset", body); code != 200 ||
		got["cleared"] != 1.0 {
		t.Errorf("reset again: %d %v", code, got)
	}
	if code, _, got := callHTTP(t, "POST", admin+"/v1/reset",
		`{"limit":"account","domain":"other"}`); code != 404 {
		t.Errorf("reset of a bucket that is not: %d %v", code, got)
	}
}

// wantDeniedWithoutStore ends the store. A limit that says deny then denies, with 503 over HTTP and
// a decision over gRPC.
func wantDeniedWithoutStore(t *testing.T, server *servers.Server, at, admin string,
	client quotadv1.QuotaServiceClient) {
	t.Helper()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	code, header, got := callHTTP(t, "POST", at+"/v1/check",
		`{"domain":"api","descriptors":{"account":"44"}}`)
	if code != 503 || header.Get("Content-Type") != "application/problem+json" ||
		got["reason"] != "store_failure" || got["allowed"] != false || got["status"] != 503.0 {
		t.Errorf("without its store: %d %v", code, got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), suite.Patience)
	defer cancel()
	d, err := client.Check(ctx, &quotadv1.CheckRequest{Domain: "api",
		Descriptors: map[string]string{"account": "44"}})
	if err != nil || d.Decision.Allowed ||
		d.Decision.Reason != quotadv1.Reason_REASON_STORE_FAILURE {
		t.Errorf("without its store over gRPC: %v, %v", d, err)
	}
	if code, _, got := callHTTP(t, "GET", admin+"/v1/buckets/account?domain=api&account=42",
		""); code != 503 {
		t.Errorf("a bucket without its store: %d %v", code, got)
	}
	if code, _, got := callHTTP(t, "POST", admin+"/v1/reset",
		`{"limit":"account","domain":"api","descriptors":{"account":"42"}}`); code != 503 {
		t.Errorf("a reset without its store: %d %v", code, got)
	}
}
