// Package door bounds what callers may hold of a node: connections, bytes that are not yet a message, answers that are not
// read, and time. The gRPC API, the HTTP API and the port for other regions each have a [Door] of their own, so that whoever
// fills one leaves the others open.
//
// A [Door] stands before a listener. It closes connections beyond those it may have open, at once: the caller learns that it
// is refused, and nothing of it stays. The connections of one address have a bound of their own; behind a proxy all callers
// have one address, so that bound is for the operator to set.
//
// [Calls] stands before the handlers of a gRPC server, with what the library leaves open:
//
//   - a unary call whose message is not whole after [ReceiveTimeout] ends with DEADLINE_EXCEEDED;
//   - what was received and is not yet a message, and what was answered and is not yet written, is counted in bytes. A
//     connection that holds too many is not read from until it holds less, and is closed after [StallTimeout];
//   - a message that is no message, or has text that is not UTF-8, is INVALID_ARGUMENT and names the field;
//   - a large message is counted before it is decoded, for 2 bytes on the wire may be 100 in memory;
//   - a call for which the node has no time is refused before it is decoded ([Work]);
//   - a panic ends the call with INTERNAL, is counted, and is logged at most once a minute for each place ([Panics]).
//
// All of it is counted: a [Door] is a prometheus.Collector.
package door
