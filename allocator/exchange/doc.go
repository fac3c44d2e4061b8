// Package exchange is the protocol by which regions lend each other quota. It is one machine that a
// driver steps. The driver tells it an event, and the machine answers with effects: the work that
// the driver must do. It has no clock, goroutine, random source or I/O of its own. Nodes drive it
// (package region), and so do tests and simulations.
//
// The machine decides which peers to ask, and keeps track of asks and answers. Package allocator
// computes how much to ask for or to keep, and when. The store decides whether a transfer is
// allowed (package algorithms).
//
// One transfer, from the borrower's tick to its credit:
//
//	borrower                                  lender
//	Tick/Observed -> Call{asks}    --->       Asked    -> Lend     (the store debits)
//	                                          Lent     -> Record   (the journal writes the rows)
//	Answered -> Credit             <---       Recorded -> Reply    (only now do they leave the node)
//	Credited (the store has it)
//
// The rows of the ledger are sums that only rise. An ask names the sums that it wants the rows to
// reach. A region that receives a row keeps the larger of the old and the new sum. So every message
// may be lost, repeated, late or out of order.
//
// A call without asks is a ping. A peer is pinged twice a second. One that has answered all is pinged
// once a second while nothing goes on, and at once when this region says something else of its
// documents. A node is degraded towards a peer whose last answer is too old.
// Hints help to choose which peer to ask, and for how much. No row depends on them.
//
// The files:
//
//	machine.go         Step, which hands each event to its handler; ticks; which buckets are known
//	event.go           events and effects; Bucket, which is what the document says about a bucket
//	message.go         what goes over the wire: messages, replies, hints
//	borrower.go        when to ask, and which peers
//	amount.go          what allocator needs to know to compute how much to ask for
//	call.go            sends asks and takes in answers
//	deferred.go        credits that arrive before our store's clock allows them
//	lender.go          answers asks
//	turns.go           buckets that wait until a call to a peer has room
//	allot.go           how much of a bucket this node may assign to Envoys
//	relief.go          when denied requests may find units that other regions hold now
//	view.go            what a node knows of one bucket
//	dealing.go         what a node knows of one peer's part in a bucket
//	hints.go           hints: what a node says of its demand, and what it hears
//	peer.go            when each peer last answered
//	clock.go           how far apart the stores' clocks are
//	generation.go      which generations of a store are believed
//	rejection.go       why a row that a peer announced was not credited
//
// A second protocol restores a bucket that the region's store has lost. The region asks others what
// they know of it:
//
//	recovery.go        how it works, and when a bucket can be restored (recovery_again.go)
//	recovery_event.go  its events and effects
//	recovery_answer.go answers questions of other nodes
//	testimony.go       what a node tells
//	named.go           which nodes of the region may have used the bucket (shown.go: a peer's store)
//	copied.go          what copies tell of nodes that do not answer
package exchange
