package tracing

import (
	"net/http"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
)

// faults are the codes of gRPC that are a fault of the server, not of the caller.
var faults = []codes.Code{codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented, codes.Internal,
	codes.Unavailable, codes.DataLoss}

// AnsweredRPC notes how a call over gRPC was answered. The call has the method's name.
func (c *Call) AnsweredRPC(answer codes.Code) {
	if c == nil {
		return
	}
	status := code.Code(answer).String()
	if answer != codes.OK {
		c.refusal, c.broken = status, slices.Contains(faults, answer)
	}
	c.answer = []attribute.KeyValue{semconv.RPCSystemNameGRPC, semconv.RPCMethod(c.name),
		semconv.RPCResponseStatusCode(status)}
}

// methods are those of HTTP that a span names; it calls all others _OTHER.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
	http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace}

// AnsweredHTTP notes how a call over HTTP was answered. The call has the path's name: what else a
// caller writes into a URL is not told.
func (c *Call) AnsweredHTTP(r *http.Request, answer int) {
	if c == nil {
		return
	}
	method, scheme := "_OTHER", "http"
	if slices.Contains(methods, r.Method) {
		method = r.Method
	}
	if r.TLS != nil {
		scheme = "https"
	}
	if answer >= http.StatusBadRequest {
		c.refusal, c.broken = strconv.Itoa(answer), answer >= http.StatusInternalServerError
	}
	c.answer = []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(c.name),
		semconv.URLPath(c.name), semconv.URLScheme(scheme), semconv.HTTPResponseStatusCode(answer)}
}
