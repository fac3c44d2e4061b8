// Package copies gives other nodes of a region copies of what one of its nodes has seen of use. So
// that use stays known if the node is lost together with the region's store.
//
// A [Sender] is on the node that has seen the use, a [Receiver] on each node that keeps a copy. A
// copy comes in numbered parts. The first parts are what the sender's journal has. The parts after
// them are what has moved since. After a gap the copy begins anew. A complete copy has everything
// up to the time that its last part says, except moves of less than a checkpoint is worth.
//
// Copies say nothing of what was lent.
package copies
