// Package peer carries the messages of package exchange between regions over gRPC.
//
// With TLS both sides prove who they are: a node's certificate names its region and itself (Identity), a server takes
// the caller from its certificate and refuses messages in any other name, and a client refuses a server of another
// region than the one it calls. Certificates are read again when their files change, and no connection outlives one.
//
// Cut is the one call that whoever may call can make, a node or not: an operator's certificate, best of a region that no
// limits document has, so that it can take no rights. A node that was not started for it refuses.
//
// Without TLS identity is what a message says of itself: run it so on loopback or a private network only.
package peer
