// Package region is one node of one region: it decides requests with its region's store and drives the protocol that
// moves rights between regions.
//
// A request takes this path, on which there is no word to another region (unless its limit says on_exhausted: borrow):
//
//	Node.Check (check.go) -> rules.match (rules.go) -> batcher (batcher.go) -> store.Decide -> Decision (decision.go)
//
// Beside it, one goroutine (engine.go) steps the machine of allocator/exchange: it hears of decisions, of peers'
// messages and of the passing of time, and carries out what the machine answers, in the store, the journal, the peers
// (peer) and gossip (hints.go). Nothing else in this package knows the protocol.
package region
