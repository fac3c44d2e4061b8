// Package exchange is the protocol by which regions move rights, as a machine that is stepped: it hears events and
// answers effects, and has no clock, goroutine, random source or I/O of its own. A node drives it (region), and so
// do the tests and simulations; nothing of the protocol is written twice.
//
// One transfer, from the borrower's tick to its credit:
//
//	borrower                                  lender
//	Tick/Observed -> Call{asks}    --->       Asked    -> Lend     (the store debits, at most to the value asked)
//	                                          Lent     -> Record   (the journal makes the rows durable)
//	Answered -> Credit             <---       Recorded -> Reply    (only now does the row leave the node)
//	Credited (the store has it)
//
// Rows are cumulative and only ever raised, an ask names the values they should reach and the receiver keeps the
// maximum, so every message may be lost, repeated, delayed or overtaken. A call without asks is a ping; the age of a
// peer's last answer is all that "degraded" means. Hints steer whom to ask and how much; no row depends on them.
//
// machine.go is the entry: Step. borrower.go decides when and of whom to ask, amount.go for how much, call.go asks and takes
// in the answers, held.go keeps what came too early, lender.go answers, view.go is what a node knows of a bucket and of its
// peers' part in it, hints.go what it says and hears of demand, peer.go is answers and their ages, clock.go how far apart the
// stores' clocks are. recovery.go is the other protocol: how a region whose store lost a bucket gets back what is known of it.
package exchange
