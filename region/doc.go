// Package region is one node of one region: it decides requests with its region's store, and moves rights between regions.
//
// A node has three wings, each a package with a page about itself:
//
//   - admit decides requests. A request takes one round trip to the region's store, and no word to another region unless its
//     limit says so (on_exhausted: borrow).
//   - rights steps the machine of allocator/exchange, which knows the protocol between regions. It tells the machine what was
//     decided and what peers say, and carries out what the machine answers: in the store, the journal, and by gossip.
//   - tenure holds on what terms the store may be used: under which generation of the store, and which limits document.
//
// They need each other in that order alone: admit needs rights and tenure, rights needs tenure. Below them are rules (a limits
// document as one region applies it), store (script calls to Redis), journal (what must survive the node), peer (calls between
// regions) and door (bounds on what callers hold).
//
// This package puts a node together (node.go), ends it (drain.go), keeps its members and their addresses (members.go), and
// shows its state (status.go, metrics_read.go).
package region
