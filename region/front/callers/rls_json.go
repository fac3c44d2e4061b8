package callers

import (
	"context"
	"net/http"
	"strings"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

// rlsJSON answers a request of Envoy's protocol that comes as JSON: 200 or 429 with the answer as
// JSON, as envoyproxy/ratelimit does at /json. It asks for no content type, since its callers send
// none.
func (s *Server) rlsJSON(w http.ResponseWriter, r *http.Request) {
	answer, ok := inHand(s, w, r.WithContext(wire.WithAct(r)), wire.AnyType, wire.MaxBodyBytes, decodeRLS,
		func(ctx context.Context, wait time.Duration, held *door.Held,
			m *envoy.RateLimitRequest) (*envoy.RateLimitResponse, error) {
			return s.rls.limit(admit.OnHandover(ctx, held.Done), m, door.HostOf(r.RemoteAddr), wait)
		})
	if !ok {
		return
	}
	code := http.StatusOK
	if answer.GetOverallCode() == overLimit {
		code = http.StatusTooManyRequests
	}
	text, err := protojson.Marshal(answer)
	if err != nil {
		wire.WriteProblem(w, wire.ProblemOf(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(text) // if the write fails, the caller has gone
}

// decodeRLS reads the JSON of a request. Every error is an *invalid.Field.
func decodeRLS(body []byte) (*envoy.RateLimitRequest, error) {
	m := &envoy.RateLimitRequest{}
	err := protojson.Unmarshal(body, m)
	if err == nil {
		return m, nil
	}
	// The library begins its texts with one of two kinds of space, so that nobody compares them.
	text := strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto:"))
	return nil, invalid.Fieldf(wire.WholeBody, "is no RateLimitRequest of envoy.service.ratelimit.v3 as JSON: %s", wire.Quote(text))
}
