// Package collector is a collector of traces for tests: it takes spans over OTLP/gRPC and keeps
// them.
package collector

import (
	"context"
	"fmt"
	"net"
	"sync"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Collector takes spans at Endpoint until Close. Safe for concurrent use.
type Collector struct {
	collect.UnimplementedTraceServiceServer
	Endpoint string // host:port on loopback

	// Rejects is how many spans of each batch it says to have refused. Set it before the first
	// call.
	Rejects int64

	server *grpc.Server
	served sync.WaitGroup

	mu       sync.Mutex
	taken    []*spans.Span
	resource *resource.Resource
}

// Start starts a collector on a free port of loopback. Close it.
func Start(options ...grpc.ServerOption) (*Collector, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a collector of traces: %w", err)
	}
	c := &Collector{Endpoint: l.Addr().String(), server: grpc.NewServer(options...)}
	collect.RegisterTraceServiceServer(c.server, c)
	c.served.Go(func() { _ = c.server.Serve(l) }) // it ends with Close
	return c, nil
}

// Close ends the collector, and cuts off calls under way.
func (c *Collector) Close() {
	c.server.Stop()
	c.served.Wait()
}

// Export implements the TraceService of OTLP.
func (c *Collector) Export(_ context.Context,
	m *collect.ExportTraceServiceRequest) (*collect.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range m.GetResourceSpans() {
		c.resource = of.GetResource()
		for _, by := range of.GetScopeSpans() {
			c.taken = append(c.taken, by.GetSpans()...)
		}
	}
	answer := &collect.ExportTraceServiceResponse{}
	if c.Rejects > 0 {
		answer.PartialSuccess = &collect.ExportTracePartialSuccess{RejectedSpans: c.Rejects}
	}
	return answer, nil
}

// Spans returns the spans that came so far, in their order.
func (c *Collector) Spans() []*spans.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*spans.Span{}, c.taken...)
}

// Resource returns who sent the last spans, nil if none came.
func (c *Collector) Resource() *resource.Resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource
}

// Attributes returns the attributes of a span as texts, by name.
func Attributes(s *spans.Span) map[string]string {
	all := map[string]string{}
	for _, a := range s.GetAttributes() {
		v := a.GetValue()
		switch {
		case v.GetStringValue() != "":
			all[a.GetKey()] = v.GetStringValue()
		default:
			all[a.GetKey()] = v.String()
		}
	}
	return all
}
