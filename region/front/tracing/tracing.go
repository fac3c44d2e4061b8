package tracing

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// MaxWaiting bounds the spans that wait to be sent or are being sent, some 2 KB each. Spans
	// beyond it are dropped and counted.
	MaxWaiting = 2048
	// batch is how many spans are sent at a time.
	batch = 512
	// sendEvery is how long a span waits for others.
	sendEvery = time.Second
	// sendTimeout bounds the sending of a batch. If it ends, the batch is dropped and counted.
	sendTimeout = 5 * time.Second
	// maxAnswer bounds an answer of the collector and its headers, in bytes. A larger one is an
	// error.
	maxAnswer = 64 << 10
	// maxText bounds a text of a span, in bytes. The rest is cut off.
	maxText = 256
	// maxAttributes bounds the attributes of a span. It is more than any span of this package has.
	maxAttributes = 16
	// maxRedial bounds the time between attempts to reach a collector.
	maxRedial = 10 * time.Second
)

// Options say what is traced, and who is told.
type Options struct {
	Endpoint string      // host:port of a collector that takes OTLP over gRPC
	TLS      *tls.Config // nil: plain text
	// Sample is the part of the calls that are traced, from 0 to 1.
	Sample              float64
	Region, Node, Build string // of this node; Build is its version
	Log                 *slog.Logger
}

// Tracer makes spans and sends them. Safe for concurrent use. A nil Tracer traces nothing.
type Tracer struct {
	sampler
	spans trace.Tracer
	about []attribute.KeyValue // of this node, in every span
	queue *queue
	conn  *grpc.ClientConn
	once  sync.Once
	end   error // of Close
}

// Open returns a Tracer. It does not wait for the collector, which may start later. Close it.
func Open(o Options) (*Tracer, error) {
	trust := insecure.NewCredentials()
	if o.TLS != nil {
		trust = credentials.NewTLS(o.TLS)
	}
	redial := backoff.DefaultConfig
	redial.MaxDelay = maxRedial
	conn, err := grpc.NewClient("dns:///"+o.Endpoint, grpc.WithTransportCredentials(trust),
		grpc.WithMaxHeaderListSize(maxAnswer),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: redial, MinConnectTimeout: sendTimeout}))
	if err != nil {
		return nil, fmt.Errorf("call the collector of traces at %s: %w", o.Endpoint, err)
	}
	to, err := otlptrace.New(context.Background(), &client{collect.NewTraceServiceClient(conn)})
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("export traces to %s: %w", o.Endpoint, err)
	}
	t := &Tracer{sampler: newSampler(o.Sample), conn: conn,
		queue: newQueue(to, o.Endpoint, o.Log),
		about: []attribute.KeyValue{attribute.String("quotad.region", o.Region),
			attribute.String("quotad.node", o.Node)}}
	// The sampler of this package has chosen by the time a span is made.
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithSpanProcessor(t.queue), sdktrace.WithRawSpanLimits(spanLimits()),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "quotad"),
			attribute.String("service.version", o.Build),
			attribute.String("service.instance.id", o.Region+"/"+o.Node))))
	t.spans = provider.Tracer("github.com/quotad/quotad", trace.WithSchemaURL(semconv.SchemaURL))
	return t, nil
}

func spanLimits() sdktrace.SpanLimits {
	l := sdktrace.NewSpanLimits()
	l.AttributeValueLengthLimit, l.AttributeCountLimit = maxText, maxAttributes
	return l
}

// Collectors returns the metrics of the spans.
func (t *Tracer) Collectors() []prometheus.Collector {
	return []prometheus.Collector{t.queue.exported, t.queue.dropped}
}

// Close sends what waits until ctx ends, and drops and counts the rest. Calls that end later are
// dropped too. A nil Tracer has nothing to send.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.once.Do(func() { t.end = t.close(ctx) })
	return t.end
}

func (t *Tracer) close(ctx context.Context) error {
	_ = t.queue.Shutdown(ctx) // its error is that of ctx, and finish counts what was not sent
	_ = t.conn.Close()        // what is still being sent fails at once
	if left := t.queue.finish(); left > 0 {
		return fmt.Errorf("%d spans of traces were not sent before the node ended; "+
			"see that the collector answers, or allow more drain_timeout", left)
	}
	return nil
}
