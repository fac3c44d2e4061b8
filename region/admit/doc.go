// Package admit decides requests.
//
// A request passes these files:
//
//	Limiter.Check (check.go)
//	  -> Flow      what the request needs next: the store, a wait, or nothing more (flow.go)
//	  -> ask       one question to the store, until the request's deadline (ask.go); of a Redis Cluster shard by shard
//	               (spanning.go)
//	  -> batcher   requests that come while round trips are under way share the next one (batcher.go)
//	  -> judge     the store's answer becomes a Decision (judge.go, decision.go)
//
// What may wait for the store is decided by time. Requests queue in fair order (queue.go); those that cannot be decided before
// their deadline, at the pace that was measured (pace.go), are refused (admission.go).
//
// Where the store does not answer, or is known not to (breaker.go), the limit's on_store_failure decides (local.go): with
// "local" this node spends a part of its own (fallback.go), of which no life of the node spends twice (claims.go), and charges
// it in the store later (settle.go).
//
// What a decision charged can be given back with its receipt (receipt.go).
package admit
