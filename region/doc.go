// Package region is one node of one region: it decides requests with its region's store, and moves
// rights between regions.
//
// The code lies in five groups of packages, each with its flow in its doc.go. A group imports only
// those before it:
//
//	base    what a node stands on: bounds on callers, links that can be cut, caches
//	memory  what outlives a request: store, journal, limits documents, copies
//	trade   what regions say to each other about rights
//	decide  a request becomes a decision
//	front   what callers and operators meet; it stands before this package
//
// Three packages are a node's wings. A driver that steps a node by hand steps these ([Node.Wings]):
//
//   - decide/admit decides requests. A request takes one round trip to the region's store. It waits
//     for another region only if its limit says so (on_exhausted: borrow).
//   - trade/rights drives the machine of allocator/exchange, which is the protocol between regions.
//     It tells the machine what was decided and what peers say, and carries out the machine's
//     effects: in the store, in the journal, and by gossip.
//   - memory/tenure holds the terms on which the store may be used: the generation of the store and
//     the limits document.
//
// This package puts a node together (node.go), ends it (drain.go), keeps the addresses of its
// members (members.go), and reports its state (status.go, metrics_read.go).
package region
