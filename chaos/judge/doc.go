// Package judge is the group of those who judge and must not believe the code that they judge:
//
//	what was admitted, and when -> oracle -> above a limit or not, by how much, who is allowed it
//	an answer to Envoy -> reference (a model of envoyproxy/ratelimit) -> as it would be there or not
//
// Neither imports a package of quotad.
package judge
