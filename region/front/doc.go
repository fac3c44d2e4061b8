// Package front is the group of what callers and operators meet:
//
//	a caller   -> base/door -> api (gRPC, RLS, RLQS, HTTP) or authz (proxies) -> region.Node
//	who he is  -> roles (what he may do), audit (what he did)
//	an operator -> api's admin port -> view (all regions at one glance), console (in a browser)
//	a decision -> tracing (a span of each sampled call)
//
// Nothing below imports it.
package front
