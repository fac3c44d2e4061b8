// Package region is one node of one region: it decides requests with its region's store and drives the protocol that
// moves rights between regions.
//
// A request takes this path, on which there is no word to another region (unless its limit says on_exhausted: borrow):
//
//	Node.Check (check.go) -> rules.match (rules.go) -> batcher (batcher.go) -> store.Decide -> Decision (decision.go)
//
// Where the store does not decide in time, or is known not to (breaker.go), the limit's on_store_failure does (fallback.go),
// and the store is charged later (Node.book in recovery.go). On a Redis Cluster a request may span shards (spanning.go).
//
// Beside it, one goroutine (engine.go) steps the machine of allocator/exchange: it hears of decisions, of peers'
// messages and of the passing of time, and carries out what the machine answers, in the store, the journal, the peers
// (peer) and gossip (hints.go). Nothing else in this package knows the protocol. standing.go opens the store, and opens
// it anew after a loss, no earlier than storetime.go knows its time to have come. recovery.go has what was lost restored,
// with what the journal, seen.go and peers remember; unused.go opens what nobody used.
//
// What may be asked of the store is decided by time: queue.go has requests wait in fair order, admission.go refuses those
// that cannot be in time at the pace that pace.go measured. refusals.go says what the store refuses.
package region
