// Package client asks the quotad nodes of a region whether requests may be served.
//
//	limits, err := client.Dial(client.Options{}, "quotad:8081") // several addresses: one region's
//	d, err := limits.Check(ctx, client.Request{Domain: "api", Descriptors: account})
//	serve := err == nil && d.Allowed // else d.RetryAfter
//
// Package httplimit makes middleware for net/http of a client, and package grpclimit interceptors
// for gRPC servers.
//
// # Calls
//
// A call takes [DefaultTimeout] at most, or [Options].Timeout. What is decided if no node can be
// asked is [Options].OnUnreachable: an error, which is the default, or the request is allowed,
// denied, or decided by a limit of this client alone. [Decision].Unreachable tells, and [Stats]
// count. A call that was not answered in time may have been charged.
//
// Up to four calls are under way at a time. Requests that come meanwhile wait, [MaxWaiting] of them
// at most, and up to 256 go together in the next call, so nothing waits for a timer. Each gets its
// own answer. A caller that gives up is not waited for; if its request was sent it may be charged.
// [Options].Unbatched sends each request alone.
//
// # Prefetch
//
// [Client.Check] asks for each request. A [Bucket] is a handle for requests that meet the same
// limits, which its owner keeps. Without [Options].Prefetch its Allow asks as well. With it, Allow
// decides from memory where it can, in some tens of nanoseconds:
//
//   - It takes units of limits that say consistency: prefetch from a node beforehand, and admits
//     from them for at most a second and within the limits' present windows. What is left it gives
//     back: after that time, when other units replace them, and on [Client.Close]. It asks for what
//     it used in 100 ms. A node gives at most a quarter of what is free, divided by the region's
//     nodes, and nothing below 8 units: near the limit each request is asked about.
//   - It remembers a denial until its retry time. One request in 100 ms is asked about all the
//     same, because units may have come back.
//
// What it admitted and denied by itself it reports to the nodes, so that they see the demand.
//
// The limits hold as without it: units count as used in the region's store before the first of
// them is spent. What a client holds when it crashes or loses its connection is not spent, and
// counts as used until the windows end that it was taken in. While a client holds units, others may
// be denied that would have been admitted. For up to a second after another limits document is in
// force, the client admits from units that it took under the one before, which count for the limits
// of that one alone.
//
// Requests with an id or a receipt are for Check. Requests that meet an exact limit are asked about
// one by one, also by Allow.
package client
