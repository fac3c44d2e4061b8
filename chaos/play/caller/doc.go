// Package caller calls one node of quotad from outside, as services and operators do: for
// decisions, whose answers go to the judge of chaos/judge/oracle, for the node's status, and for
// cuts.
//
// A request for a decision belongs to one of three classes:
//
//   - It was never sent, because nobody accepted the connection. The driver of the load counts it;
//     it is no answer.
//   - It was answered with a decision. That is the answer.
//   - Anything else has an unknown outcome, which the judge counts as admitted: a timeout, a broken
//     connection, or an admission without a cell of a store.
//
// The package knows quotad by its API alone, and imports no package that serves.
package caller
