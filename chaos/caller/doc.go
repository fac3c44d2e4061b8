// Package caller calls one node of quotad as services and operators do, from
// outside: for decisions, whose answers go to the judge of chaos/oracle, and
// for the node's status.
//
// A request for a decision is in one of three classes. It was never sent
// (nobody accepted the connection): it is counted by who asked, and no answer.
// It was answered with a decision: that is the answer. Anything else, a
// timeout, a broken connection, or an admission that no store gave a cell to,
// has an unknown outcome, which the judge counts as admitted.
//
// The package knows quotad by its API alone, and imports nothing of what it
// calls.
package caller
