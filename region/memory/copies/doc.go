// Package copies gives what one node of a region has seen of use to other nodes of the region. So it is
// known if the node is lost together with the region's store.
//
// A Sender is the side of the node that has seen it, a Receiver that of a node that keeps copies. The
// parts of a copy have numbers. The first ones are all that the sender's journal has; those after them are
// what has moved since. After a gap all begins anew. A copy is complete as of the time that its last part
// says, less what had moved by less than a checkpoint is worth.
//
// Copies say nothing of what was lent.
package copies
