package tracing

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/quotad/quotad/region/decide/admit"
)

// Header is the header of HTTP, and in lower case the metadata of gRPC, in which a caller tells its
// span: the traceparent of W3C's Trace Context.
const Header = "traceparent"

// Call is a call that is traced. Not safe for concurrent use. All methods do nothing on nil, which
// is a call that is not traced.
type Call struct {
	by     *Tracer
	name   string
	begun  time.Time
	parent trace.SpanContext // not valid: there is none

	failed bool
	// answer says how the call came and how it was answered. refusal is the status of an answer that
	// is none of success, and broken whether it is a fault of this side.
	answer  []attribute.KeyValue
	refusal string
	broken  bool

	// says is the decision that says most: the first denial, or else the first.
	says              admit.Decision
	decisions, denied int
	degraded          bool // any
	fromMemory        bool // all
}

// Begin returns a call to trace, or nil if it is not sampled. name is that of its span, of which
// there must be few. traceparent is what the caller sent; one that is malformed counts as none.
//
// Of calls without a traceparent the part of Options.Sample is traced. A caller that sends one
// chooses itself. What its callers choose is followed up to the same part of all calls with a
// traceparent, and up to 100 more after a time in which they chose less. No caller is told whether
// its choice was followed.
func (t *Tracer) Begin(name, traceparent string) *Call {
	parent := parentOf(traceparent)
	if !t.choose(parent) {
		return nil
	}
	return &Call{by: t, name: name, begun: time.Now(), parent: parent}
}

// Decided notes decisions of the call, in the order of its requests.
func (c *Call) Decided(all ...admit.Decision) {
	if c == nil {
		return
	}
	for i := range all {
		d := &all[i]
		if c.decisions == 0 || c.denied == 0 && !d.Allowed {
			c.says = *d
		}
		c.fromMemory = d.FromMemory && (c.fromMemory || c.decisions == 0)
		c.degraded = c.degraded || d.Degraded
		c.decisions++
		if !d.Allowed {
			c.denied++
		}
	}
}

// Failed notes that a request of the call was not decided, for a reason that is not bad input.
func (c *Call) Failed() {
	if c != nil {
		c.failed = true
	}
}

// End ends the call. If it was decided or has failed, its span is put in the queue. Of a call that
// was refused before, such as for bad input, there is no span.
func (c *Call) End() {
	if c == nil || c.decisions == 0 && !c.failed {
		return
	}
	ctx := context.Background()
	if c.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, c.parent)
	}
	_, span := c.by.spans.Start(ctx, c.name, trace.WithTimestamp(c.begun),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(c.by.about...))
	if c.decisions > 0 {
		span.SetAttributes(attribute.String("quotad.limit", c.says.Limit),
			attribute.String("quotad.reason", string(c.says.Reason)),
			attribute.Bool("quotad.allowed", c.denied == 0),
			attribute.Bool("quotad.degraded", c.degraded),
			attribute.Bool("quotad.from_memory", c.fromMemory),
			attribute.Int("quotad.decisions", c.decisions),
			attribute.Int("quotad.denied", c.denied))
	}
	span.SetAttributes(c.answer...)
	switch {
	case c.failed:
		span.SetStatus(codes.Error, "not decided")
	case c.broken:
		span.SetStatus(codes.Error, "")
	}
	if c.failed || c.broken {
		span.SetAttributes(semconv.ErrorTypeKey.String(cmp.Or(c.refusal, "_OTHER")))
	}
	span.End()
}

type key struct{}

// With returns a context from which From returns the call.
func With(ctx context.Context, c *Call) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the call of a context, nil if it has none.
func From(ctx context.Context) *Call {
	c, _ := ctx.Value(key{}).(*Call)
	return c
}
