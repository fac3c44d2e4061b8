// Package peer carries the messages of package exchange between regions over gRPC. Identity is what a message says
// of itself for now: run it on loopback or a private network.
package peer
