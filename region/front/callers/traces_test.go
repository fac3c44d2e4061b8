package callers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/metadata"

	"github.com/quotad/quotad/chaos/lab/collector"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/authz"
	"github.com/quotad/quotad/region/front/tracing"
)

// aTraceparent is that of a caller who samples the call, and traceOf and spanOf are its ids.
const (
	traceOf      = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanOf       = "00f067aa0ba902b7"
	aTraceparent = "00-" + traceOf + "-" + spanOf + "-01"
)

// secret is in all descriptors, and must be in no span.
const secret = "alice"

// tracer returns a tracer that sends the given part of the calls to a collector.
func tracer(t testing.TB, sample float64) (*tracing.Tracer, *collector.Collector) {
	t.Helper()
	c, err := collector.Start()
	suite.Must(t, err)
	t.Cleanup(c.Close)
	made, err := tracing.Open(tracing.Options{Endpoint: c.Endpoint, Sample: sample,
		Region: "here", Node: "n1", Log: fronts.Quiet()})
	suite.Must(t, err)
	t.Cleanup(func() { _ = made.Close(t.Context()) })
	return made, c
}

// tracedServer returns a server whose calls a tracer traces.
func tracedServer(t testing.TB, n Node, by *tracing.Tracer, proxies *authz.Mapping) *Server {
	t.Helper()
	s := startServer(n, fronts.Quiet(), Options{Traces: by, Proxies: proxies})
	t.Cleanup(func() { suite.Must(t, s.Close()) })
	return s
}

// send sends a request with a traceparent to the handler, and returns the status of the answer.
func send(s *Server, path, body string) int {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Traceparent", aTraceparent)
	r.Header.Set("Tracestate", "vendor="+secret)
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	return w.Code
}

// tracedCalls are calls of every kind that is traced, by the name of their spans. All are admitted.
func tracedCalls(t *testing.T, s *Server) map[string]func() error {
	conn := dialed(t, s)
	quota, limiter := quotadv1.NewQuotaServiceClient(conn), envoy.NewRateLimitServiceClient(conn)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", aTraceparent,
		"tracestate", "vendor="+secret)
	one := &quotadv1.CheckRequest{Domain: "api", Descriptors: map[string]string{"account": secret}}
	list := &envoy.RateLimitRequest{Domain: "api", Descriptors: []*ratelimit.RateLimitDescriptor{
		{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "account", Value: secret}}}}}
	const body = `{"domain":"api","descriptors":{"account":"` + secret + `"}}`
	web := func(path, body string) func() error {
		return func() error {
			if code := send(s, path, body); code != http.StatusOK {
				return fmt.Errorf("%s is answered %d", path, code)
			}
			return nil
		}
	}
	return map[string]func() error{
		"quotad.v1.QuotaService/Check": func() error { _, err := quota.Check(ctx, one); return err },
		"quotad.v1.QuotaService/CheckBatch": func() error {
			_, err := quota.CheckBatch(ctx, &quotadv1.CheckBatchRequest{
				Requests: []*quotadv1.CheckRequest{one, one}})
			return err
		},
		"envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit": func() error {
			_, err := limiter.ShouldRateLimit(ctx, list)
			return err
		},
		"/v1/check":       web("/v1/check", body),
		"/v1/check-batch": web("/v1/check-batch", `{"requests":[`+body+`,`+body+`]}`),
		"/v1/authz":       web("/v1/authz", ""),
		"/json": web("/json", `{"domain":"api","descriptors":[{"entries":[{"key":"account","value":"`+
			secret+`"}]}]}`),
	}
}

// aMapping describes every request of a proxy.
func aMapping(t *testing.T) *authz.Mapping {
	t.Helper()
	m, err := authz.Parse("authz.yaml", []byte("rules: [{domain: api, "+
		"descriptors: {account: {value: "+secret+"}}}]\n"))
	suite.Must(t, err)
	return m
}

// TestSpansOfRealCalls: a real node's call of every kind has one span below its caller's, and
// nothing of what the caller described is in it.
func TestSpansOfRealCalls(t *testing.T) {
	node := fronts.Start(t, fixtures.Process(t), fronts.AccountLimit(1000, fronts.RoomyWindow()))
	by, c := tracer(t, 1)
	s := tracedServer(t, node, by, aMapping(t))
	all := tracedCalls(t, s)
	for name, ask := range all {
		if err := ask(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	suite.Must(t, by.Close(t.Context()))
	for _, span := range c.Spans() {
		name := span.GetName()
		if _, known := all[name]; !known {
			t.Errorf("another span came, or a second one: %v", span)
		}
		delete(all, name)
		if got := fmt.Sprintf("%x %x", span.GetTraceId(), span.GetParentSpanId()); got !=
			traceOf+" "+spanOf {
			t.Errorf("%s is of %s", name, got)
		}
		says := collector.Attributes(span)
		if says["quotad.limit"] != "account" || says["quotad.reason"] != string(admit.WithinLimit) ||
			says["quotad.region"] != "here" || says["quotad.node"] != "n1" {
			t.Errorf("%s says %v", name, says)
		}
		wantAnswer(t, name, says)
		if strings.Contains(span.String(), secret) {
			t.Errorf("%s tells of the caller's descriptors: %v", name, span)
		}
	}
	for name := range all {
		t.Errorf("%s has no span", name)
	}
}

// wantAnswer fails the test unless a span has the attributes of OpenTelemetry for a call that was
// answered well.
func wantAnswer(t *testing.T, name string, says map[string]string) {
	t.Helper()
	want := map[string]string{"rpc.system.name": "grpc", "rpc.method": name, "rpc.response.status_code": "OK"}
	if strings.HasPrefix(name, "/") {
		want = map[string]string{"http.request.method": "POST", "http.route": name, "url.path": name,
			"url.scheme": "http", "http.response.status_code": "int_value:200"}
	}
	for key, value := range want {
		if says[key] != value {
			t.Errorf("%s: %s is %q, want %q", name, key, says[key], value)
		}
	}
	if says["error.type"] != "" {
		t.Errorf("%s has the error %s", name, says["error.type"])
	}
}

// TestSpansOfErrors: a span says by what status a call failed. A denial is no error.
func TestSpansOfErrors(t *testing.T) {
	by, c := tracer(t, 1)
	node := &fronts.Node{Decision: fronts.Denied()}
	s := tracedServer(t, node, by, nil)
	rpc := quotadv1.NewQuotaServiceClient(dialed(t, s))
	ask := func() {
		send(s, "/v1/check", `{"domain":"api"}`)
		_, _ = rpc.Check(t.Context(), &quotadv1.CheckRequest{Domain: "api"})
	}
	ask()
	node.Decision = fronts.Undecided(admit.StoreFailure)
	ask()
	node.Err = errors.New("it failed")
	ask()
	suite.Must(t, by.Close(t.Context()))
	got := map[string]int{}
	for _, span := range c.Spans() {
		says := collector.Attributes(span)
		got[fmt.Sprintf("%s%s, error %s, %s", says["rpc.response.status_code"], says["http.response.status_code"],
			says["error.type"], span.GetStatus().GetCode())]++
	}
	const ok, bad = "STATUS_CODE_UNSET", "STATUS_CODE_ERROR"
	want := map[string]int{"int_value:429, error , " + ok: 1, "OK, error , " + ok: 2,
		"int_value:503, error 503, " + bad: 2, "UNAVAILABLE, error UNAVAILABLE, " + bad: 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the spans are\n%v, want\n%v", got, want)
	}
}

// TestSamplingNothing: callers who sample their calls get no spans from a node that samples none.
func TestSamplingNothing(t *testing.T) {
	by, c := tracer(t, 0)
	node := &fronts.Node{Decision: admit.Decision{Allowed: true}}
	for name, ask := range tracedCalls(t, tracedServer(t, node, by, aMapping(t))) {
		if err := ask(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	suite.Must(t, by.Close(t.Context()))
	if n := len(c.Spans()); n > 0 {
		t.Errorf("%d spans came", n)
	}
}

// TestSpansOfWhatIsNotDecided: bad input has no span. A node that failed has one that says so.
func TestSpansOfWhatIsNotDecided(t *testing.T) {
	by, c := tracer(t, 1)
	node := &fronts.Node{Err: errors.New("the descriptor " + secret + " failed")}
	s := tracedServer(t, node, by, nil)
	send(s, "/v1/check", `{"domain":1}`)
	send(s, "/v1/check", `{"domain":"api"}`)
	send(s, "/v1/peek", `{"domain":"api"}`)
	node.Err = invalid.Fieldf("descriptors."+secret, "is wrong")
	send(s, "/v1/check", `{"domain":"api"}`)
	suite.Must(t, by.Close(t.Context()))
	spans := c.Spans()
	if len(spans) != 1 || spans[0].GetStatus().GetMessage() != "not decided" ||
		strings.Contains(spans[0].String(), secret) {
		t.Errorf("the spans are %v", spans)
	}
}

// TestNothingIsTracedWithoutTracer: no handler, interceptor or node is wrapped.
func TestNothingIsTracedWithoutTracer(t *testing.T) {
	node := &fronts.Node{Decision: admit.Decision{Allowed: true}}
	node.Wait = func(ctx context.Context, _ admit.Request) error {
		if tracing.From(ctx) != nil {
			return errors.New("the call is traced")
		}
		return nil
	}
	s := newServer(t, node, fronts.Quiet())
	if s.node != Node(node) {
		t.Errorf("the node is wrapped in a %T", s.node)
	}
	for name, ask := range tracedCalls(t, s) {
		if err := ask(); err != nil && name != "/v1/authz" { // there is no mapping
			t.Errorf("%s: %v", name, err)
		}
	}
}
