package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/quotad/quotad/chaos/lab/collector"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parent returns a traceparent with the sampled flag, or without.
func parent(n int, sampled bool) string {
	flags := map[bool]string{true: "01", false: "00"}[sampled]
	return fmt.Sprintf("00-%032x-%016x-%s", n+1, n+1, flags)
}

func start(t *testing.T) *collector.Collector {
	t.Helper()
	c, err := collector.Start()
	suite.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

func open(t *testing.T, endpoint string, sample float64) *Tracer {
	t.Helper()
	tracer, err := Open(Options{Endpoint: endpoint, Sample: sample, Region: "eu", Node: "n1",
		Build: "v1", Log: slog.New(slog.DiscardHandler)})
	suite.Must(t, err)
	t.Cleanup(func() { _ = tracer.Close(ended()) })
	return tracer
}

// ended returns a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// calls makes n calls that are all allowed, and returns how many are traced.
func calls(tracer *Tracer, n int, traceparent func(int) string) (traced int) {
	for i := range n {
		c := tracer.Begin("a", traceparent(i))
		if c != nil {
			traced++
		}
		c.Decided(admit.Decision{Allowed: true, Reason: admit.WithinLimit})
		c.End()
	}
	return traced
}

func none(int) string      { return "" }
func sampled(i int) string { return parent(i, true) }

// TestSpanSaysWhatWasDecided: a span has the decision, the node, and the caller's span as its
// parent. It has nothing else.
func TestSpanSaysWhatWasDecided(t *testing.T) {
	c := start(t)
	tracer := open(t, c.Endpoint, 1)
	call := tracer.Begin("/v1/check-batch", parent(0x4bf9, true))
	call.Decided(admit.Decision{Allowed: true, Limit: "first", FromMemory: true},
		admit.Decision{Limit: "second", Reason: admit.OverLimit, FromMemory: true},
		admit.Decision{Limit: "third", Reason: admit.StoreFailure, Degraded: true})
	call.End()
	suite.Must(t, tracer.Close(t.Context()))
	spans := c.Spans()
	if len(spans) != 1 {
		t.Fatalf("%d spans came", len(spans))
	}
	s := spans[0]
	ids := fmt.Sprintf("%s %x %x", s.GetName(), s.GetTraceId(), s.GetParentSpanId())
	if want := fmt.Sprintf("/v1/check-batch %032x %016x", 0x4bfa, 0x4bfa); ids != want {
		t.Errorf("the span is %s, not %s", ids, want)
	}
	got := fmt.Sprint(collector.Attributes(s))
	want := "map[quotad.allowed:bool_value:false quotad.decisions:int_value:3 " +
		"quotad.degraded:bool_value:true quotad.denied:int_value:2 " +
		"quotad.from_memory:bool_value:false quotad.limit:second quotad.node:n1 " +
		"quotad.reason:over_limit quotad.region:eu]"
	if words(got) != want {
		t.Errorf("the attributes are\n%s, not\n%s", words(got), want)
	}
	if at := c.Resource().String(); !strings.Contains(at, "eu/n1") {
		t.Errorf("the resource %s names no node", at)
	}
	if n := testutil.ToFloat64(tracer.queue.exported); n != 1 {
		t.Errorf("%v spans are counted as exported", n)
	}
}

// words undoes the two kinds of space with which protobuf's texts are written.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestSpanSaysHowItWasAnswered: of a caller's own words no more than what is known before is told.
func TestSpanSaysHowItWasAnswered(t *testing.T) {
	c := start(t)
	tracer := open(t, c.Endpoint, 1)
	web, rpc := tracer.Begin("/v1/authz", ""), tracer.Begin("a.B/C", "")
	for _, call := range []*Call{web, rpc} {
		call.Decided(admit.Decision{Allowed: true})
	}
	r := httptest.NewRequest("BREW", "https://secret.example/v1/authz?secret", nil)
	web.AnsweredHTTP(r, 200)
	rpc.AnsweredRPC(codes.ResourceExhausted) // of a caller's fault
	web.End()
	rpc.End()
	suite.Must(t, tracer.Close(t.Context()))
	for _, s := range c.Spans() {
		says := collector.Attributes(s)
		got := says["http.request.method"] + says["url.scheme"] + says["url.path"] + says["error.type"] +
			says["rpc.response.status_code"]
		if want := map[string]string{"/v1/authz": "_OTHERhttps/v1/authz", "a.B/C": "RESOURCE_EXHAUSTED"}[s.GetName()]; got != want ||
			strings.Contains(s.String(), "secret") {
			t.Errorf("%s: %v", s.GetName(), says)
		}
	}
	if n := len(c.Spans()); n != 2 {
		t.Errorf("%d spans", n)
	}
}

// TestCallsWithoutDecisionHaveNoSpan, and those that failed have one that says so and no more.
func TestCallsWithoutDecisionHaveNoSpan(t *testing.T) {
	c := start(t)
	tracer := open(t, c.Endpoint, 1)
	tracer.Begin("refused", "").End()
	failed := tracer.Begin("failed", "")
	failed.Failed()
	failed.End()
	suite.Must(t, tracer.Close(t.Context()))
	for _, s := range c.Spans() {
		if s.GetName() != "failed" || s.GetStatus().GetMessage() != "not decided" ||
			len(s.GetAttributes()) != 3 || collector.Attributes(s)["error.type"] != "_OTHER" {
			t.Errorf("a span came: %v", s)
		}
	}
	if len(c.Spans()) != 1 {
		t.Errorf("%d spans came", len(c.Spans()))
	}
}

// TestSampling: the node's own part is an upper bound of what callers choose.
func TestSampling(t *testing.T) {
	const many = 20_000
	tests := map[string]struct {
		sample      float64
		parent      func(int) string
		least, most int
	}{
		"all":                  {1, none, many, many},
		"all, callers choose":  {1, sampled, many, many},
		"none":                 {0, none, 0, 0},
		"none, callers choose": {0, sampled, 0, 0},
		// The standard deviation is 42.
		"a tenth": {0.1, none, 1_700, 2_300},
		// All that is earned is spent, and the credit of the start.
		"a tenth of what callers choose": {0.1, sampled, many/10 - 1, many/10 + 1},
		"callers that choose none":       {1, func(i int) string { return parent(i, false) }, 0, 0},
		"callers that choose less than the node": {0.1, func(i int) string {
			return parent(i, i%20 == 0)
		}, many / 20, many / 20},
		// 8,000 calls come after the others have chosen nothing: 100 of what those earned are
		// saved.
		"callers that save up": {0.1, func(i int) string {
			return parent(i, i >= 12_000)
		}, 899, 901},
		"a malformed parent": {0, func(int) string { return "00-1-2-01" }, 0, 0},
		"an endless parent": {0.1, func(i int) string {
			return parent(i, true) + strings.Repeat("-", 99)
		}, 1_700, 2_300},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tracer := &Tracer{sampler: newSampler(test.sample)}
			got := 0
			for i := range many {
				if tracer.Begin("a", test.parent(i)) != nil {
					got++
				}
			}
			if got < test.least || got > test.most {
				t.Errorf("%d calls are traced, not %d to %d", got, test.least, test.most)
			}
		})
	}
}

// TestCollectorThatDoesNotAnswer: calls go on, the queue stays within its bound, and every span is
// counted in the end.
func TestCollectorThatDoesNotAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	suite.Must(t, err)
	defer silent.Close()
	tracer := open(t, silent.Addr().String(), 1)
	const many = 3 * MaxWaiting
	calls(tracer, many, none)
	if n := tracer.queue.waiting.Load(); n > MaxWaiting {
		t.Errorf("%d spans wait", n)
	}
	if n := testutil.ToFloat64(tracer.queue.dropped); n < many-MaxWaiting {
		t.Errorf("%v of %d spans are counted as dropped", n, many)
	}
	_ = tracer.Close(ended())
	calls(tracer, 1, none) // not sent any more
	if n := testutil.ToFloat64(tracer.queue.dropped); n != many {
		t.Errorf("%v of %d spans are counted as dropped in the end", n, many)
	}
}

// TestCollectorThatIsNotThere, or that refuses spans, is counted and logged once.
func TestCollectorThatIsNotThere(t *testing.T) {
	gone := start(t)
	gone.Close()
	refuses := start(t)
	refuses.Rejects = 1
	refusesMore := start(t)
	refusesMore.Rejects = math.MaxInt64
	const many = 2 * batch
	for name, test := range map[string]struct {
		endpoint string
		dropped  float64
	}{"gone": {gone.Endpoint, many}, "refuses one of a batch": {refuses.Endpoint, 2},
		"refuses more than there are": {refusesMore.Endpoint, many}} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			tracer, err := Open(Options{Endpoint: test.endpoint, Sample: 1,
				Log: slog.New(slog.NewTextHandler(&text, nil))})
			suite.Must(t, err)
			calls(tracer, many, none)
			suite.Must(t, tracer.Close(t.Context()))
			if n := testutil.ToFloat64(tracer.queue.dropped); n != test.dropped {
				t.Errorf("%v of %d spans are counted as dropped", n, many)
			}
			if n := testutil.ToFloat64(tracer.queue.exported); n != many-test.dropped {
				t.Errorf("%v of %d spans are counted as exported", n, many)
			}
			if n := strings.Count(text.String(), "does not take all spans"); n != 1 {
				t.Errorf("it is logged %d times:\n%s", n, text.String())
			}
		})
	}
}

// TestCollectorsOverTLS: spans reach a collector of a trusted authority, and no other.
func TestCollectorsOverTLS(t *testing.T) {
	with := httptest.NewTLSServer(nil) // for its certificate
	defer with.Close()
	c, err := collector.Start(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: with.TLS.Certificates})))
	suite.Must(t, err)
	defer c.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(with.Certificate())
	for _, test := range []struct {
		pool  *x509.CertPool
		spans int
	}{{x509.NewCertPool(), 0}, {trusted, 1}} {
		tracer, err := Open(Options{Endpoint: c.Endpoint, TLS: &tls.Config{RootCAs: test.pool},
			Sample: 1, Log: slog.New(slog.DiscardHandler)})
		suite.Must(t, err)
		calls(tracer, 1, none)
		suite.Must(t, tracer.Close(t.Context()))
		if n := testutil.ToFloat64(tracer.queue.dropped); n != float64(1-test.spans) {
			t.Errorf("%v spans are counted as dropped", n)
		}
		if n := len(c.Spans()); n != test.spans {
			t.Errorf("%d spans came, not %d", n, test.spans)
		}
	}
}

// TestTextsAreCut: no span is larger than its bounds allow.
func TestTextsAreCut(t *testing.T) {
	c := start(t)
	tracer := open(t, c.Endpoint, 1)
	call := tracer.Begin("a", "")
	call.Decided(admit.Decision{Limit: strings.Repeat("x", math.MaxUint16)})
	call.End()
	suite.Must(t, tracer.Close(t.Context()))
	for _, s := range c.Spans() {
		if n := len(collector.Attributes(s)["quotad.limit"]); n != maxText {
			t.Errorf("the limit has %d bytes", n)
		}
	}
	if len(c.Spans()) != 1 {
		t.Errorf("%d spans came", len(c.Spans()))
	}
}
