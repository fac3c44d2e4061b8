package callers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/quotad/quotad/chaos/lab/fronts"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
)

// admitsAtOnce is a node that admits everything, and remembers nothing.
type admitsAtOnce struct{ fronts.Node }

// Check returns the same decision for every request.
func (*admitsAtOnce) Check(context.Context, admit.Request) (admit.Decision, error) {
	return fronts.Allowed(), nil
}

// BenchmarkTraces measures what traces add to a decision over gRPC, with transport, and to one by
// the handler of HTTP. The callers of "parent" send a traceparent with the sampled flag, those of
// "plain" send none. In "off" there is no tracer, and a call costs what it costs without this
// package.
func BenchmarkTraces(b *testing.B) {
	for _, test := range []struct {
		name, parent string
		on           bool
		sample       float64
	}{
		{"off/plain", "", false, 0}, {"off/parent", aTraceparent, false, 0},
		{"1%/plain", "", true, 0.01}, {"1%/parent", aTraceparent, true, 0.01},
		{"all/parent", aTraceparent, true, 1},
	} {
		var s *Server
		if test.on {
			by, _ := tracer(b, test.sample)
			s = tracedServer(b, &admitsAtOnce{}, by, nil)
		} else {
			s = newServer(b, &admitsAtOnce{}, fronts.Quiet())
		}
		b.Run("grpc/"+test.name, func(b *testing.B) { benchRPC(b, s, test.parent) })
		b.Run("http/"+test.name, func(b *testing.B) { benchWeb(b, s, test.parent) })
	}
}

func benchRPC(b *testing.B, s *Server, parent string) {
	ctx := b.Context()
	if parent != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", parent)
	}
	client := quotadv1.NewQuotaServiceClient(dialed(b, s))
	m := &quotadv1.CheckRequest{Domain: "api", Descriptors: map[string]string{"account": "42"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Check(ctx, m); err != nil {
			b.Fatal(err)
		}
	}
}

func benchWeb(b *testing.B, s *Server, parent string) {
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/v1/check",
			strings.NewReader(`{"domain":"api","descriptors":{"account":"42"}}`))
		r.Header.Set("Content-Type", "application/json")
		if parent != "" {
			r.Header.Set("Traceparent", parent)
		}
		w := httptest.NewRecorder()
		if s.http.Handler.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
