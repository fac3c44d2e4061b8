// Package httplimit asks quotad about each request of a net/http server.
//
//	limits, err := client.Dial(client.Options{OnUnreachable: client.Allow}, "quotad:8081")
//	perAddress := httplimit.By(httplimit.Values{"ip": httplimit.RemoteAddr()})
//	limit := httplimit.New(limits, httplimit.Options{Domain: "api", Key: perAddress})
//	err = http.ListenAndServe(":8000", limit(handler))
//
// A denied request is answered 429, and the handler does not see it. It is 503 if the region's
// store failed and the limit says to deny then, if no node can be asked and the client's choice is
// Fail or Deny, and if the node refuses to decide. The answer is application/problem+json (RFC
// 9457) with the members limit and retry_after_ms, where they are known, and has Retry-After in
// whole seconds, rounded up.
//
// Every answer has X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset (seconds until
// the limit is whole again) of the limit that decided. It has RateLimit-Policy and RateLimit (IETF
// draft-ietf-httpapi-ratelimit-headers-11) of every limit that applied. Remaining is what is left
// in this region. Options.NoHeaders leaves all of them out, because they tell names of limits.
package httplimit
