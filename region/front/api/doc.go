// Package api serves one node. Callers reach it over gRPC (quotad.v1.QuotaService, Envoy's rate
// limit services, health and reflection) and over HTTP with JSON. Operators have a listener of
// their own, the admin listener, over HTTP. The package decides nothing itself: see
// region.Node.Check.
//
// # Decisions and errors
//
// A Decision is an answer, not an error. Over gRPC every decision comes with status OK, also a
// denial because the store failed: the caller reads allowed and reason. Errors are for calls that
// were not decided:
//
//	InvalidArgument     bad input; google.rpc.BadRequest names the fields
//	FailedPrecondition  a receipt that this region cannot refund
//	Unavailable         the store cannot be read; or the node had no time for the call, a batch as a
//	                    whole: nothing was charged, and google.rpc.RetryInfo says when to come again
//	Canceled, DeadlineExceeded
//	                    the caller gave up; the request may have been carried out
//	Internal            a fault of quotad
//	ResourceExhausted   a message that is too large, or a stream beyond those that a node takes
//
// A batch is decided request by request. If one of them is bad input, its answer has the reason
// invalid_request, and the others are decided.
//
// # Who may call
//
// Package roles decides which caller may make which call. Without a guard everybody may. A caller
// who is not known is answered 401 or Unauthenticated, one who may not make the call 403 or
// PermissionDenied, both before the body or message is read. A caller who may not name the domain
// is answered 403 or PermissionDenied, too. If a caller may not name the domain of one request of a
// batch, that request alone is answered as wrong. Acts that can exceed or cut a limit are written
// to the audit log (acts.go).
//
// # Paths
//
// The API over HTTP:
//
//	POST /v1/check            200 allowed, 429 denied, 503 denied because the store failed, or
//	                          undecided (reason queue_full) if the node had no time for it;
//	                          charges if allowed. With a request_id it is safe to send twice.
//	                          "receipt": true asks for the receipt that /v1/refund takes
//	POST /v1/check-batch      {"requests": [...]}, 1 to 1,000 of what /v1/check takes: 200 with
//	                          {"decisions": [...]}; a bad request is answered alone, with reason
//	                          invalid_request and a problem
//	POST /v1/peek             200 with the decision that check would make, also with "allowed":
//	                          false; charges nothing, and takes neither request_id nor receipt
//	     /v1/authz            any method, from a proxy: may its client's request pass? See
//	                          Server.authz
//	POST /v1/refund           {"receipt": ...}: gives back what a check charged, once; 409 if this
//	                          region cannot
//	GET  /v1/openapi.yaml     these paths as OpenAPI, also on the admin listener
//	GET  /livez, /readyz      the process runs; it may be sent requests
//
// The admin listener over HTTP, /livez and /readyz as well:
//
//	GET  /, /console/         a page for browsers. See package console
//	POST /v1/reset            {"limit", "domain", "descriptors"}: clears the use of a bucket in
//	                          this region
//	POST /v1/cut              {"region", "for"}: drops all traffic between the node and a region
//	                          for a while; 403 unless the node was started for rehearsals
//	                          of faults
//	POST /v1/rehearse         {"region", "load"} or {"region", "kill_store": "5s"}: sends a region so
//	                          many requests a second, or ends its store with its data for a
//	                          while; 403 except in quotad dev
//	GET  /v1/status           the node, and what it knows of the other regions
//	GET  /v1/overview         all nodes of all regions as each tells of itself, and the buckets with
//	                          the most units (?hottest=20); up to a second old
//	GET  /v1/watch            such an overview each second, as server-sent events
//	GET  /v1/explain/{limit}  how a bucket stands in every region, and why the last request on it
//	                          was decided as it was; parameters as of /v1/buckets/{limit}
//	GET  /v1/buckets          buckets that the node was asked about lately: ?domain=, limit= and
//	                          most= (100), and what values begin with, as account=4
//	GET  /v1/buckets/{limit}  the ledger of a bucket in this region; ?domain=api&account=42: every
//	                          parameter but domain is a descriptor, so a descriptor named
//	                          domain cannot be given
//	GET  /v1/document         the document in force, as text
//	GET  /v1/documents        which documents are open, and what each region uses of them
//	POST /v1/apply            the text of a document, as application/yaml
//	GET  /metrics             Prometheus
//	GET  /debug/pprof/        profiles of the process, of a minute at most
//
// # Answers over HTTP
//
// A decision of a limit also comes as headers: X-RateLimit-Limit, X-RateLimit-Remaining and
// X-RateLimit-Reset, the last two only if the store or the node counted. X-RateLimit-Reset says
// after how many seconds, rounded up, the limit is whole again in this region if nothing else
// happens: nothing used counts any more. A 429 has Retry-After (whole seconds, rounded up, at
// least 1) if the time is known.
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
// package door, and the constants beside the servers here.
//
// A reset breaks a limit on purpose: what is admitted after it comes on top of what was admitted
// before.
//
// Nothing is logged for each request. Input is repeated only quoted and cut.
package api
