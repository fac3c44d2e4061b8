// Package admit decides requests.
//
// A request passes these files:
//
//	Limiter.Check (check.go)
//	  -> Flow     says what the request needs next: an answer of the store, a wait, or nothing
//	              more (flow.go; lacking.go says for what)
//	  -> queue    asks the store, with what else waits for it (package queue)
//	  -> judge    turns the store's answer into a Decision (judge.go, decision.go)
//
// If the store does not answer, or is known not to, the limit's on_store_failure decides
// (local.go). With "local" this node admits units from a part of its own (package local).
//
// A decision may have a receipt, for which what it charged is given back (package receipts).
//
// A request may have lists of descriptors, as those of Envoy (lists.go), which are one decision or
// one each (apart.go). A decision on several limits has what each said (states.go). It is made
// before its caller gives up (patience.go). What no limit applies to is decided in unmatched.go.
//
// A node remembers denials (memory.go), and holds units of limits that say consistency: prefetch
// (package prefetch). A client may take such units and decide by itself for a moment (take.go).
package admit
