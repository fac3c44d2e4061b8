package serving

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/quotad/quotad/cmd/quotad/build"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/region/front/tracing"
	"github.com/quotad/quotad/region/trade/peer"
)

// loadTracesTLS reads the certificates for calls to the collector of traces, and returns nil if
// none are configured.
func loadTracesTLS(c *nodeconfig.Config) (*tls.Config, error) {
	return loadClientTLS(c, "traces", peer.Files{CA: c.Traces.CA})
}

// openTracer returns nil if nothing is to be traced.
func openTracer(c *nodeconfig.Config, log *slog.Logger) (*tracing.Tracer, error) {
	if c.Traces.Endpoint == "" {
		return nil, nil
	}
	trust, err := loadTracesTLS(c)
	if err != nil {
		return nil, err
	}
	t, err := tracing.Open(tracing.Options{Endpoint: c.Traces.Endpoint, TLS: trust,
		Sample: c.Traces.Sample, Region: c.Region, Node: c.Node, Build: build.This().Version,
		Log: log})
	if err != nil {
		return nil, exit.Usage(c.Fail("traces.endpoint", err.Error(), "correct the address"))
	}
	return t, nil
}

// discardTraces closes the tracer of a node that did not serve.
func discardTraces(t *tracing.Tracer) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = t.Close(ctx) // there is nothing to send
}

// tracesInWords says what is traced, and who is told.
func tracesInWords(c *nodeconfig.Config) string {
	if c.Traces.Endpoint == "" {
		return "none"
	}
	how := "plain text"
	if c.Traces.CA != "" {
		how = "TLS"
	}
	return fmt.Sprintf("%v of the calls, to %s, %s", c.Traces.Sample, c.Traces.Endpoint, how)
}
