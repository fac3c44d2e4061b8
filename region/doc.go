// Package region is one node of one region: it decides requests with its region's store, and moves
// rights between regions.
//
// A node has three parts, called wings. Each is a package with its own doc.go:
//
//   - admit decides requests. A request takes one round trip to the region's store. It waits for
//     another region only if its limit says so (on_exhausted: borrow).
//   - rights drives the machine of allocator/exchange, which is the protocol between regions. It
//     tells the machine what was decided and what peers say, and carries out the machine's effects:
//     in the store, in the journal, and by gossip.
//   - tenure holds the terms on which the store may be used: the generation of the store and the
//     limits document.
//
// They depend on each other in that order only: admit on rights and tenure, rights on tenure. Below
// them are rules (a limits document as one region applies it), store (script calls to Redis),
// journal (what must survive the node's end), peer (calls between regions) and door (bounds on what
// callers may hold).
//
// This package puts a node together (node.go), ends it (drain.go), keeps the addresses of its
// members (members.go), and reports its state (status.go, metrics_read.go).
package region
