// Package exchange is the protocol by which regions lend each other quota. It is one machine, which
// is stepped: a driver tells it events, and it answers with effects, the work that the driver must
// do. It has no clock, goroutine, random source or I/O of its own. Nodes drive it (package region),
// and so do tests and simulations.
//
// The machine decides whom to ask, and keeps track of what is asked for and answered. How much to
// ask for or to keep, and when, it asks package allocator. Whether a transfer is allowed, the store
// decides (package algorithms).
//
// One transfer, from the borrower's tick to its credit:
//
//	borrower                                  lender
//	Tick/Observed -> Call{asks}    --->       Asked    -> Lend     (the store debits)
//	                                          Lent     -> Record   (the journal writes the rows)
//	Answered -> Credit             <---       Recorded -> Reply    (only now do they leave the node)
//	Credited (the store has it)
//
// The rows of the ledger are sums that only rise. An ask names the sums it wants them to reach, and
// whoever receives a row keeps the larger of two. So every message may be lost, repeated, late or
// out of order. A call without asks is a ping: a peer whose last answer is too old is degraded.
// Hints help to choose whom to ask for how much; no row depends on them.
//
// The files:
//
//	machine.go         Step, which hands each event to its handler; ticks; which buckets are known
//	event.go           events and effects, and Bucket: what the document says of one bucket
//	message.go         what goes over the wire: messages, replies, hints
//	borrower.go        when and of whom to ask; amount.go prepares for how much
//	call.go            sends asks and takes in answers
//	deferred.go        credits that come before our store's clock allows them
//	lender.go          answers asks
//	turns.go           buckets that wait until a call to a peer has room
//	view.go            what a node knows of one bucket, by what its store showed
//	dealing.go         what it knows of one peer's part in a bucket
//	hints.go           hints: what it says of its demand, and what it hears
//	peer.go, clock.go  answers of peers and their ages; how far apart the stores' clocks are
//	generation.go      which generations of a store are believed
//	rejection.go       why a row that a peer announced was not credited
//	recovery.go        the other protocol: a region whose store lost a bucket asks others what they
//	                   know of it (recovery_event.go, testimony.go)
package exchange
