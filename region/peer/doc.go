// Package peer carries the messages of package exchange between regions over gRPC.
//
// With TLS both sides prove who they are: a node's certificate names its region and itself (Identity), a server takes
// the caller from its certificate and refuses messages in any other name, and a client refuses a server of another
// region than the one it calls. Certificates are read again when their files change, and no connection outlives one.
//
// Without TLS identity is what a message says of itself: run it so on loopback or a private network only.
package peer
