// Package wire is what the servers of a node's callers and of its operators have in common. It knows no
// call of either.
//
// # Who may call
//
// Package roles decides which caller may make which call. Without a guard everybody may. A caller
// who is not known is answered 401 or Unauthenticated, one who may not make the call or name the
// domain 403 or PermissionDenied, the first two before the body or message is read. Acts that can
// exceed or cut a limit are written to the audit log (Port.Done).
//
// # Answers over HTTP
//
// An answer that is not a decision is application/problem+json (RFC 9457), with a "field" if the
// input is at fault. The 503 of a failed store is both: a problem with the members of the decision.
//
// A POST without Content-Type: application/json is answered 415, and so is a document without
// application/yaml. A POST that a browser sends for a page of another site is answered 403. A body
// that cannot be read, and text that is not UTF-8, is answered 400, as all bad input.
//
// # Bounds
//
// A caller can hold only so much of the node: connections, headers, half-sent messages, time. See
// package door, and the constants beside the servers.
//
// Nothing is logged for each request. Input is repeated only quoted and cut.
package wire
