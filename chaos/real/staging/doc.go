// Package staging rehearses faults on a deployment that already runs: somebody's staging
// environment, whose nodes are named in a nodes file.
//
// A [Stage] plays scenarios of chaos/real/scenario there, those that need only cuts. It asks the nodes
// of the file for decisions over their HTTP API, and for their status and for cuts at their admin
// listeners. A node makes cuts only if it was started with chaos: true. Every cut ends by itself,
// after ten minutes at the latest. Nothing here starts, ends or empties a process or a Redis,
// because they belong to somebody else.
//
// Where nodes ask who calls, the nodes file names a token or a certificate of a caller with the
// roles check and operate.
package staging
