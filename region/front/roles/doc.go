// Package roles says who may do what.
//
// There are four roles. check spends units: check, peek, report, take and settle. read looks at
// a node: status, ledgers and metrics. operate also resets buckets and cuts regions off to rehearse
// faults. admin may also do what changes the promise for everybody, and look into the process. Who
// may operate may read, and who is admin may operate. check is apart: neither does an operator
// spend, nor a service look at others' ledgers. A caller may have several roles.
//
// Which call needs which role is said in one table, in needs.go. A call that is not in it is
// refused.
//
// Callers are named in the roles file ([Parse]). They prove who they are with a bearer token, of
// which the file has the SHA-256 alone, or with a certificate that a trusted authority has signed
// and that has a name of the caller among its subject alternative names: a URI, such as a SPIFFE
// ID, or dns:NAME. The common name means nothing. A caller with domains may name only these.
//
// A [Guard] stands before the calls of one port. [Book] has the roles file in force, and reads it
// again when it changes.
package roles
