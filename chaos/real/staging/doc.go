// Package staging rehearses faults on a deployment that already runs: somebody's staging
// environment, whose nodes are named in a nodes file.
//
// A [Stage] plays scenarios of chaos/real/scenario there, those that need only cuts. It asks the nodes
// of the file for decisions and for their status over their HTTP API, and for cuts over their peer
// port. A node makes cuts only if it was started with chaos: true. Every cut ends by itself, after
// ten minutes at the latest. Nothing here starts, ends or empties a process or a Redis, because
// they belong to somebody else.
//
// If the nodes have peer_tls, the stage needs a certificate of their authority. Any certificate of
// it will do. One that names a region which no limits document has cannot take rights: quotad keys
// cert certs --region operators --node alice.
//
// Run it on a machine that none of the nodes runs on: the answer to a cut that covers the caller's
// own address arrives only when the cut has ended.
package staging
