// Package callers serves the callers of one node over gRPC (quotad.v1.QuotaService, Envoy's rate limit
// services, health and reflection) and over HTTP with JSON. It decides nothing itself: see
// region.Node.Check.
//
// # Decisions and errors
//
// A Decision is an answer, not an error. Over gRPC every decision comes with status OK, also a
// denial because the store failed: the caller reads allowed and reason. Errors are for calls that
// were not decided:
//
//	InvalidArgument     bad input; google.rpc.BadRequest names the fields
//	FailedPrecondition  a receipt that this region cannot settle
//	Unavailable         the store cannot be read; or the node had no time for the call, a batch as a
//	                    whole: nothing was charged, and google.rpc.RetryInfo says when to come again
//	Canceled, DeadlineExceeded
//	                    the caller gave up; the request may have been carried out
//	Internal            a fault of quotad
//	ResourceExhausted   a message that is too large, or a stream beyond those that a node takes
//
// A batch is decided request by request. If one of them is bad input, its answer has the reason
// invalid_request, and the others are decided. So it is if a caller may not name the domain of one of
// them.
//
// # Paths
//
// The API over HTTP:
//
//	POST /v1/check            200 allowed, 429 denied, 503 denied because the store failed, or
//	                          undecided (reason queue_full) if the node had no time for it;
//	                          charges if allowed. With a request_id it is safe to send twice.
//	                          "receipt": true asks for the receipt that /v1/settle takes,
//	                          "question": true whether a use may begin, and charges nothing
//	POST /v1/check-batch      {"requests": [...]}, 1 to 1,000 of what /v1/check takes: 200 with
//	                          {"decisions": [...]}; a bad request is answered alone, with reason
//	                          invalid_request and a problem
//	POST /v1/peek             200 with the decision that check would make, also with "allowed":
//	                          false; charges nothing, and takes neither request_id nor receipt
//	     /v1/authz            any method, from a proxy: may its client's request pass? See
//	                          Server.authz
//	POST /v1/report           200 with the decision; charges what a use cost, whatever is left
//	POST /v1/settle           {"receipt": ..., "used": ...}: settles what a check charged, once; 409 if this
//	                          region cannot
//	GET  /v1/openapi.yaml     these paths as OpenAPI, also on the admin listener
//	GET  /livez, /readyz      the process runs; it may be sent requests
//	GET  /healthcheck         as /readyz, with the statuses of envoyproxy/ratelimit: 200 or 500
//
// # Answers over HTTP
//
// A decision of a limit also comes as headers: X-RateLimit-Limit, X-RateLimit-Remaining and
// X-RateLimit-Reset, the last two only if the store or the node counted. X-RateLimit-Reset says
// after how many seconds, rounded up, the limit is whole again in this region if nothing else
// happens: nothing used counts any more. A 429 has Retry-After (whole seconds, rounded up, at
// least 1) if the time is known.
package callers
