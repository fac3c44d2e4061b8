// Package tracing tells a collector of traces what a node decided: one span for each sampled call,
// over OTLP/gRPC.
//
// A call that is not sampled costs a look at its traceparent. What is sampled waits in a queue of
// at most [MaxWaiting] spans, from which another goroutine sends. So a collector that is slow, or
// does not answer, delays no decision: spans beyond the queue are dropped and counted.
//
// What comes from outside is bounded. Callers may say which of their calls are sampled, but not how
// many: see [Tracer.Begin]. Of what they send, only the ids of a traceparent reach a span. A span
// never has a descriptor, a key, a domain, or the text of an error, which may repeat them.
package tracing
