// Package client asks the quotad nodes of a region whether requests may be served.
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
