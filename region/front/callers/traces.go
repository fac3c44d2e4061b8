package callers

import (
	"context"
	"errors"
	"net/http"
	"strings"

	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/tracing"
)

// tracedMethods are the gRPC calls of which there are spans: those that are decided.
var tracedMethods = map[string]bool{
	quotadv1.QuotaService_Check_FullMethodName:            true,
	quotadv1.QuotaService_CheckBatch_FullMethodName:       true,
	envoy.RateLimitService_ShouldRateLimit_FullMethodName: true,
}

// traceRPC returns an interceptor that traces calls. It comes after a call is admitted and decoded:
// of a call that was not read there is no span.
func traceRPC(t *tracing.Tracer) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, m any, info *grpc.UnaryServerInfo,
		next grpc.UnaryHandler) (any, error) {
		if !tracedMethods[info.FullMethod] {
			return next(ctx, m)
		}
		parent := ""
		if given := metadata.ValueFromIncomingContext(ctx, tracing.Header); len(given) == 1 {
			parent = given[0]
		}
		call := t.Begin(strings.TrimPrefix(info.FullMethod, "/"), parent)
		if call == nil {
			return next(ctx, m)
		}
		defer call.End()
		answer, err := next(tracing.With(ctx, call), m)
		call.AnsweredRPC(status.Code(err))
		return answer, err
	}
}

// traced returns a handler that traces the requests of a path. It is the same handler if the node
// traces nothing.
func (s *Server) traced(path string, next http.HandlerFunc) http.HandlerFunc {
	t := s.options.Traces
	if t == nil {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		parent := ""
		if given := r.Header.Values(tracing.Header); len(given) == 1 {
			parent = given[0]
		}
		call := t.Begin(path, parent)
		if call == nil {
			next(w, r)
			return
		}
		defer call.End()
		heard := &answered{ResponseWriter: w, status: http.StatusOK}
		next(heard, r.WithContext(tracing.With(r.Context(), call)))
		call.AnsweredHTTP(r, heard.status)
	}
}

// answered notes the status of an answer.
type answered struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap returns what http.ResponseController acts on.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// tracedNode notes what a node decides in the calls that are traced.
type tracedNode struct{ Node }

// Check implements Node.
func (n tracedNode) Check(ctx context.Context, q admit.Request) (admit.Decision, error) {
	d, err := n.Node.Check(ctx, q)
	note(ctx, err, d)
	return d, err
}

// Peek implements Node.
func (n tracedNode) Peek(ctx context.Context, q admit.Request) (admit.Decision, error) {
	d, err := n.Node.Peek(ctx, q)
	note(ctx, err, d)
	return d, err
}

// Report implements Node.
func (n tracedNode) Report(ctx context.Context, q admit.Request) (admit.Decision, error) {
	d, err := n.Node.Report(ctx, q)
	note(ctx, err, d)
	return d, err
}

// CheckBatch implements Node.
func (n tracedNode) CheckBatch(ctx context.Context, all []admit.Request) ([]admit.Decision, error) {
	decided, err := n.Node.CheckBatch(ctx, all)
	note(ctx, err, decided...)
	return decided, err
}

// CheckLists implements Node.
func (n tracedNode) CheckLists(ctx context.Context, q admit.Request) (admit.ListsDecision, error) {
	decided, err := n.Node.CheckLists(ctx, q)
	note(ctx, err, decided.Decisions...)
	return decided, err
}

// note notes what came of a request in the call of a context, if that is traced.
func note(ctx context.Context, err error, decided ...admit.Decision) {
	call := tracing.From(ctx)
	if call == nil {
		return
	}
	if err == nil {
		call.Decided(decided...)
		return
	}
	if _, wrong := errors.AsType[*invalid.Field](err); !wrong {
		call.Failed()
	}
}
