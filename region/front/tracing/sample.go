package tracing

import (
	"context"
	"math/rand/v2"
	"sync/atomic"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	// whole is the credit that one span costs.
	whole = 1 << 30
	// maxCredit bounds the credit that is saved up, in spans. Callers who sample as many calls as
	// the node does, but not evenly, can have so many more in a row.
	maxCredit = 100
	// maxTraceparent bounds a traceparent in bytes. Version 00 has 55. A longer one counts as none.
	maxTraceparent = 128
)

// sampler chooses the calls that are traced. Safe for concurrent use.
//
// Calls without a traceparent are chosen at random. Of those with one, the caller has chosen. Its
// choice is followed while there is credit: each call with a traceparent earns a part of a span,
// sampled by its caller or not, and each span costs a whole. So callers who send only sampled calls
// get the node's part of them, and callers who sample less than the node get all of theirs.
type sampler struct {
	part   float64 // of the calls; from 0 to 1
	earns  int64   // credit for each call that has a traceparent
	credit *atomic.Int64
}

func newSampler(part float64) sampler {
	s := sampler{part: part, earns: int64(part * whole), credit: new(atomic.Int64)}
	if part > 0 {
		s.credit.Store(whole) // the first call that its caller sampled is traced
	}
	return s
}

// choose reports whether to trace a call. parent is that of the caller, and is not valid if there is
// none.
func (s *sampler) choose(parent trace.SpanContext) bool {
	if !parent.IsValid() {
		return rand.Float64() < s.part
	}
	for {
		old := s.credit.Load()
		now := min(old+s.earns, maxCredit*whole)
		follow := parent.IsSampled() && now >= whole
		if follow {
			now -= whole
		}
		if s.credit.CompareAndSwap(old, now) {
			return follow
		}
	}
}

// header is a traceparent. It implements propagation.TextMapCarrier, and has nothing else: what a
// caller sends as tracestate does not reach a span.
type header string

// Get implements propagation.TextMapCarrier.
func (h header) Get(name string) string {
	if name == Header {
		return string(h)
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (header) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (header) Keys() []string { return []string{Header} }

// parentOf returns the span of which a traceparent tells, not valid if it tells of none.
func parentOf(traceparent string) trace.SpanContext {
	if traceparent == "" || len(traceparent) > maxTraceparent {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(),
		header(traceparent)))
}
