package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// queue stands before and behind the processor that sends spans in batches, and counts what it
// passes on and what comes out. It bounds the spans between the two, so that each span that is
// dropped is counted.
type queue struct {
	sdktrace.SpanProcessor
	to       *sender
	waiting  atomic.Int64
	exported prometheus.Counter
	dropped  prometheus.Counter
}

func newQueue(to sdktrace.SpanExporter, endpoint string, log *slog.Logger) *queue {
	q := &queue{
		exported: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_trace_spans_exported_total",
			Help: "Spans of traces that the collector took."}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_trace_spans_dropped_total",
			Help: "Spans of traces that were dropped: the queue was full, or the collector did " +
				"not take them in time."})}
	q.to = &sender{SpanExporter: to, queue: q, ended: make(chan struct{}), log: log,
		endpoint: endpoint}
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(q.to,
		sdktrace.WithMaxQueueSize(MaxWaiting), sdktrace.WithMaxExportBatchSize(batch),
		sdktrace.WithBatchTimeout(sendEvery), sdktrace.WithExportTimeout(sendTimeout))
	return q
}

// OnEnd takes a span that has ended. It never waits.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if q.waiting.Add(1) > MaxWaiting {
		q.waiting.Add(-1)
		q.dropped.Inc()
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// finish waits until nothing is being sent any more, and returns how many spans were never tried.
// They are counted as dropped. Call it after Shutdown.
func (q *queue) finish() (left int64) {
	<-q.to.ended
	left = q.waiting.Swap(0)
	q.dropped.Add(float64(left))
	return left
}

// sender sends batches of spans, one at a time. It returns no errors, since there is nobody to
// handle them: it counts, and logs when sending begins to fail and when it works again.
type sender struct {
	sdktrace.SpanExporter
	queue    *queue
	endpoint string
	log      *slog.Logger
	failing  bool
	ended    chan struct{} // closed by Shutdown
}

// ExportSpans implements sdktrace.SpanExporter.
func (s *sender) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	sent, lost := int64(len(spans)), int64(0)
	if part, some := errors.AsType[*refused](err); some {
		lost = min(part.spans, sent)
	} else if err != nil {
		lost = sent
	}
	s.queue.exported.Add(float64(sent - lost))
	s.queue.dropped.Add(float64(lost))
	s.queue.waiting.Add(-sent)
	failing := err != nil
	if failing && !s.failing {
		s.log.Warn("the collector of traces does not take all spans; those are dropped; "+
			"start it, or correct traces.endpoint", "endpoint", s.endpoint, "err",
			fmt.Sprintf("%.*s", maxText, err.Error()))
	} else if s.failing && !failing {
		s.log.Info("the collector of traces takes all spans again", "endpoint", s.endpoint)
	}
	s.failing = failing
	return nil
}

// Shutdown implements sdktrace.SpanExporter. It is called once, after the last batch.
func (s *sender) Shutdown(ctx context.Context) error {
	defer close(s.ended)
	_ = s.SpanExporter.Shutdown(ctx) // if ctx has ended, finish counts what is left
	return nil
}
