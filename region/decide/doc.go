// Package decide is the group in which a request becomes a decision:
//
//	a request -> admit: from memory (prefetch), or by on_store_failure (local), or
//	             queue: with many others to memory/store
//	its charge -> receipts: gives a receipt for it, and gives it back
//	its use   -> trade/rights, which borrows where units lack
//	a report of an Envoy -> envoys (steps the machine of allocator/assign)
//
// It imports trade, memory and base.
package decide
