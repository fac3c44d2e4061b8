// Package envoyconfig writes the configuration of an Envoy that asks quotad about its requests, from
// a limits document and the mapping that proxies without a protocol of their own use.
//
// Of a rule's descriptors each limit of the domain takes those that it needs, in its order: they are
// a list of entries, which Envoy sends, and which a local bound of the same Envoy counts. So what
// quotad does not decide in time is bounded all the same; [policy.Limit.LocalBound] says by how much.
//
// A mapping goes by the first rule that a request meets. Envoy makes every list whose actions all
// fit, and only some actions can have conditions: those of a fixed text, and those of a header's
// known values. What cannot be said in this way, or what Envoy cannot send, is refused with its place
// in the mapping.
package envoyconfig
