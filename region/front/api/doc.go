// Package api serves one node: callers over gRPC and HTTP (package callers), and operators on a
// listener of their own, the admin listener, over HTTP (package operators).
package api
