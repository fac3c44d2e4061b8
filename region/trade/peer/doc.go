// Package peer carries messages between nodes over gRPC: those of package exchange between regions,
// and what nodes of one region ask each other.
//
// With TLS both sides prove who they are. A node's certificate names its region and the node
// ([Identity]). A server takes the caller's identity from the certificate, and refuses messages in
// any other name. A client refuses a server that is not of the region it calls. Certificates are
// read again when their files change, and no connection outlives the certificates that it was made
// with.
//
// Without TLS a message says itself who it is from, and nothing proves it. Run it so on loopback or
// a private network only.
package peer
