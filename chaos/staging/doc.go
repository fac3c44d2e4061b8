// Package staging rehearses faults on a deployment that runs already: somebody's
// staging environment, whose nodes are named in a nodes file.
//
// A [Stage] plays the scenarios of chaos/scenario there, those that need nothing
// but cuts. It asks the nodes of the file for decisions and for their status over
// their HTTP API, and for cuts over their peer port. A node makes cuts if it
// was started with chaos: true and refuses them else; every cut ends by itself,
// after ten minutes at the latest. Processes and Redis are not ours, so that
// nothing here starts, ends or empties any.
//
// With peer_tls on the nodes the stage needs a certificate of their authority.
// Any does, but one that names a region which no limits document has can take
// no rights: quotad certs issue certs --region operators --node alice.
//
// Run it on a machine that is none of the nodes': the answer to a cut that
// covers the caller's own address arrives when the cut has ended.
package staging
