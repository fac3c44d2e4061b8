package tracing

import (
	"context"
	"fmt"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
)

// client sends batches to a collector. It implements otlptrace.Client.
//
// The client of otlptracegrpc cannot be used, because it imports grpc/encoding/gzip. With that all
// gRPC servers of the process would take compressed messages, and package door counts what comes
// before it is decompressed.
type client struct{ to collect.TraceServiceClient }

// Start implements otlptrace.Client. The connection is made with the first batch.
func (*client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client. The Tracer closes the connection.
func (*client) Stop(context.Context) error { return nil }

// UploadTraces implements otlptrace.Client. It sends a batch once. To send it again would keep the
// spans behind it waiting. If the collector refused some of the spans, the error is a *refused.
func (c *client) UploadTraces(ctx context.Context, batch []*spans.ResourceSpans) error {
	answer, err := c.to.Export(ctx, &collect.ExportTraceServiceRequest{ResourceSpans: batch})
	if err != nil {
		return err
	}
	if p := answer.GetPartialSuccess(); p.GetRejectedSpans() > 0 {
		return &refused{p.GetRejectedSpans(), p.GetErrorMessage()}
	}
	return nil
}

// refused is the error of a batch of which a collector took a part.
type refused struct {
	spans int64 // from 1, as the collector says: it may be more than there were
	why   string
}

// Error implements error. What the collector says is quoted and cut.
func (r *refused) Error() string {
	return fmt.Sprintf("it refused %d spans: %.*q", r.spans, maxText, r.why)
}
