package api

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// TestNode spends a limit of a real node over gRPC and HTTP, on an embedded Redis and on a
// redis-server.
func TestNode(t *testing.T) {
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			node := fronts.Start(t, server, fronts.AccountLimit(3, fronts.RoomyWindow()))
			s := newServer(t, node, fronts.Quiet())
			client, err := grpc.NewClient(strings.TrimPrefix(fronts.Listen(t, s.Callers.ServeGRPC, s.Close), "http://"),
				grpc.WithTransportCredentials(insecure.NewCredentials()))
			suite.Must(t, err)
			defer client.Close()
			at := fronts.Listen(t, s.Callers.ServeHTTP, s.Close)
			admin := fronts.Listen(t, s.Operators.Serve, s.Close)
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

// wantFilled spends a limit of 3 of account 42: three of four requests pass, and a peek costs
// nothing.
func wantFilled(t *testing.T, at string) {
	t.Helper()
	const body = `{"domain":"api","descriptors":{"account":"42"}}`
	var cell any
	for i, want := range []int{200, 200, 200, 429} {
		left := float64(max(2-i, 0))
		if code, _, peeked := fronts.Call(t, "POST", at+"/v1/peek", body); code != 200 ||
			peeked["remaining"] != left || peeked["allowed"] != (want == 200) {
			t.Errorf("peek before request %d: %d %v", i, code, peeked)
		}
		code, header, got := fronts.Call(t, "POST", at+"/v1/check", body)
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
	if code, _, got := fronts.Call(t, "POST", at+"/v1/check",
		`{"domain":"api","descriptors":{"account":"7"},"cost":4}`); code != 429 ||
		got["reason"] != "never" || got["retry_after_ms"] != nil {
		t.Errorf("a cost above the limit: %d %v", code, got)
	}
	if code, _, got := fronts.Call(t, "POST", at+"/v1/check", `{"domain":"other"}`); code != 200 ||
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
	suite.Must(t, err)
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
	code, _, got := fronts.Call(t, "GET", at+"/v1/buckets/account?domain=api&account=42", "")
	if code != 200 || got["used"] != 3.0 || got["free"] != 0.0 || got["fading"] != 0.0 ||
		got["algorithm"] != "fixed_window" || got["limit_units"] != 3.0 ||
		got["entitlement"] != 3.0 || got["share"] != 3.0 || got["next_share"] != 3.0 {
		t.Errorf("the bucket of account 42: %d %v", code, got)
	}
	if code, _, got := fronts.Call(t, "GET", at+"/v1/buckets/other?domain=api&account=42",
		""); code != 404 {
		t.Errorf("a bucket that is not: %d %v", code, got)
	}
	if code, _, got := fronts.Call(t, "GET", at+"/v1/status", ""); code != 200 ||
		got["region"] != "here" || got["ready"] != true || got["generation"] == 0.0 {
		t.Errorf("the status: %d %v", code, got)
	}
}

// wantChargedOnce sends a request of account 45 with one id over gRPC and HTTP, and wants it
// charged once and settled once.
func wantChargedOnce(t *testing.T, at, admin string, client quotadv1.QuotaServiceClient) {
	t.Helper()
	const body = `{"domain":"api","descriptors":{"account":"45"},"cost":2,"request_id":"r1","receipt":true}`
	code, _, first := fronts.Call(t, "POST", at+"/v1/check", body)
	if code != 200 || first["remaining"] != 1.0 || first["repeated"] != nil ||
		first["receipt"] == nil {
		t.Fatalf("the first time: %d %v", code, first)
	}
	m := &quotadv1.CheckRequest{Domain: "api", Descriptors: map[string]string{"account": "45"},
		Cost: proto.Int64(2), RequestId: "r1", Receipt: true}
	batch, err := client.CheckBatch(t.Context(),
		&quotadv1.CheckBatchRequest{Requests: []*quotadv1.CheckRequest{m, m}})
	suite.Must(t, err)
	for i, d := range batch.Decisions {
		if !d.Allowed || !d.Repeated || d.Remaining != 1 || d.Receipt == "" {
			t.Errorf("repeated as number %d of a batch: %v", i, d)
		}
	}
	for i, c := range []struct{ receipt, repeated any }{{first["receipt"], false},
		{batch.Decisions[0].Receipt, true}} {
		code, _, got := fronts.Call(t, "POST", at+"/v1/settle", fmt.Sprintf(`{"receipt":%q,"used":0}`,
			c.receipt))
		back, _ := got["settled"].([]any)
		if code != 200 || got["repeated"] != c.repeated || len(back) != 1 ||
			fmt.Sprint(back[0]) != "map[back:2 charged:0 limit:account owed:0]" {
			t.Errorf("settle %d: %d %v", i, code, got)
		}
	}
	got, err := client.Settle(t.Context(),
		&quotadv1.SettleRequest{Receipt: batch.Decisions[1].Receipt, Used: new(int64)})
	if err != nil || !got.Repeated || len(got.Settled) != 1 || got.Settled[0].Back != 2 {
		t.Errorf("settle over gRPC: %v, %v", got, err)
	}
	if code, _, got := fronts.Call(t, "GET", admin+"/v1/buckets/account?domain=api&account=45",
		""); code != 200 || got["used"] != 0.0 || got["free"] != 3.0 {
		t.Errorf("after it was settled the bucket is %d %v", code, got)
	}
	if code, _, got := fronts.Call(t, "POST", at+"/v1/settle", `{"receipt":"none","used":0}`); code != 400 ||
		got["field"] != "receipt" {
		t.Errorf("what is no receipt: %d %v", code, got)
	}
	forged, _ := strings.CutPrefix(fmt.Sprint(first["receipt"]), "qr1_")
	// This replaces the code that authenticates it, in base64.
	forged = "qr1_" + strings.Repeat("A", 43) + forged[43:]
	if code, _, got := fronts.Call(t, "POST", at+"/v1/settle", fmt.Sprintf(`{"receipt":%q,"used":0}`,
		forged)); code != 409 || got["status"] != 409.0 {
		t.Errorf("a forged receipt: %d %v", code, got)
	}
}

// wantReset clears the use of account 42.
func wantReset(t *testing.T, at, admin string) {
	t.Helper()
	const body = `{"limit":"account","domain":"api","descriptors":{"account":"42"}}`
	if code, _, got := fronts.Call(t, "POST", admin+"/v1/reset", body); code != 200 ||
		got["cleared"] != 3.0 {
		t.Errorf("reset: %d %v", code, got)
	}
	if code, _, got := fronts.Call(t, "POST", at+"/v1/check",
		`{"domain":"api","descriptors":{"account":"42"}}`); code != 200 || got["remaining"] != 2.0 {
		t.Errorf("after a reset: %d %v", code, got)
	}
	if code, _, got := fronts.Call(t, "POST", admin+"/v1/reset", body); code != 200 ||
		got["cleared"] != 1.0 {
		t.Errorf("reset again: %d %v", code, got)
	}
	if code, _, got := fronts.Call(t, "POST", admin+"/v1/reset",
		`{"limit":"account","domain":"other"}`); code != 404 {
		t.Errorf("reset of a bucket that is not: %d %v", code, got)
	}
}

// wantDeniedWithoutStore ends the store. A limit that says deny then denies, with 503 over HTTP and
// a decision over gRPC.
func wantDeniedWithoutStore(t *testing.T, server *servers.Server, at, admin string,
	client quotadv1.QuotaServiceClient) {
	t.Helper()
	suite.Must(t, server.Close())
	code, header, got := fronts.Call(t, "POST", at+"/v1/check",
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
	if code, _, got := fronts.Call(t, "GET", admin+"/v1/buckets/account?domain=api&account=42",
		""); code != 503 {
		t.Errorf("a bucket without its store: %d %v", code, got)
	}
	if code, _, got := fronts.Call(t, "POST", admin+"/v1/reset",
		`{"limit":"account","domain":"api","descriptors":{"account":"42"}}`); code != 503 {
		t.Errorf("a reset without its store: %d %v", code, got)
	}
}
