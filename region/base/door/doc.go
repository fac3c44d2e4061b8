// Package door bounds what callers may hold of a node: connections, bytes that are not yet a
// message, answers that are not read, and time. The gRPC API, the HTTP API and the port for other
// regions each have their own [Door], so a caller that fills one leaves the others open.
//
// A [Door] stands before a listener. It closes connections beyond its bound at once, so the caller
// learns that it is refused and nothing of the connection stays. Connections of one address have
// their own bound. Behind a proxy all callers have one address, so the operator sets that bound.
//
// [Calls] stands before the handlers of a gRPC server and bounds what the gRPC library leaves
// unbounded:
//
//   - A unary call whose message is not complete after [ReceiveTimeout] ends with
//     DEADLINE_EXCEEDED.
//   - Bytes that were received and are not yet a message, and answers that are not yet written, are
//     counted. A connection that holds too many is not read from until it holds fewer
//     (backpressure), and is closed after [StallTimeout].
//   - A message that cannot be decoded, or has text that is not UTF-8, is INVALID_ARGUMENT, and the
//     error names the field.
//   - The records of a large message are counted before it is decoded, because 2 bytes on the wire
//     may be 100 in memory.
//   - A call that its caller may not make is refused before it is decoded ([Guard]).
//   - A call for which the node has no time is refused: with its headers ([Crowd]), or before it is
//     decoded ([Work]).
//   - A panic ends the call with INTERNAL, is counted, and is logged at most once a minute for each
//     place ([Panics]).
//
// All of this is counted: a [Door] is a prometheus.Collector.
package door
